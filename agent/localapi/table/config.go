package table

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var configMapColumns = []metav1.TableColumnDefinition{nameColumn, column("Data", "Number of entries"), ageColumn}

func configMapRow(object *corev1.ConfigMap) metav1.TableRow {
	return cells(object.Name, int64(len(object.Data)+len(object.BinaryData)), since(object.CreationTimestamp))
}

var secretColumns = []metav1.TableColumnDefinition{nameColumn, column("Type", "Kind of the secret"), column("Data", "Number of entries"), ageColumn}

func secretRow(object *corev1.Secret) metav1.TableRow {
	return cells(object.Name, string(object.Type), int64(len(object.Data)), since(object.CreationTimestamp))
}
