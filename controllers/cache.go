package controllers

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

// CacheOptions keep the cache small: of a Node only what the controllers look at, and no
// managedFields, but for the one entry of a NodeRecovery that holderOf looks for.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:           {Transform: stripNode},
			&v1alpha1.NodeRecovery{}: {Transform: stripRecovery},
		},
	}
}

// stripNode keeps a node's identity, its labels and whether it is in reach: some 500 bytes
// of 10 to 50 KiB.
func stripNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	stripped := &corev1.Node{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:              node.Name,
			UID:               node.UID,
			ResourceVersion:   node.ResourceVersion,
			Labels:            node.Labels,
			CreationTimestamp: node.CreationTimestamp,
			DeletionTimestamp: node.DeletionTimestamp,
		},
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			stripped.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return stripped, nil
}

// stripRecovery keeps of the managedFields whether the spec is as the controllers applied
// it. The spec is atomic, so it has one entry, and whoever changes a field of it by other
// means takes that entry away.
func stripRecovery(object any) (any, error) {
	recovery, ok := object.(*v1alpha1.NodeRecovery)
	if !ok {
		return object, nil
	}
	var ours []metav1.ManagedFieldsEntry
	for _, entry := range recovery.ManagedFields {
		if entry.Manager == fieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply && ownsSpec(entry.FieldsV1) {
			ours = []metav1.ManagedFieldsEntry{{
				Manager: entry.Manager, Operation: entry.Operation, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
			}}
		}
	}
	recovery.ManagedFields = ours
	return recovery, nil
}

func ownsSpec(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return false
	}
	var owned map[string]json.RawMessage
	if err := json.Unmarshal(fields.GetRawBytes(), &owned); err != nil {
		return false
	}
	_, has := owned["f:spec"]
	return has
}

// outOfReach says whether the node's Ready condition is Unknown: kubelet has not been heard
// of for some time. Nothing is known to be wrong with it.
func outOfReach(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionUnknown
		}
	}
	return false
}
