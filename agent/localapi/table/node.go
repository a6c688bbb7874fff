package table

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	rolePrefix = "node-role.kubernetes.io/"
	roleLabel  = "kubernetes.io/role"
)

var nodeColumns = []metav1.TableColumnDefinition{
	nameColumn,
	column("Status", "Whether the node is ready, and may get pods"),
	column("Roles", "Roles of the node"),
	ageColumn,
	column("Version", "Version of kubelet"),
	wide("Internal-IP", "Address within the cluster"),
	wide("External-IP", "Address from outside"),
	wide("OS-Image", "Operating system"),
	wide("Kernel-Version", "Version of the kernel"),
	wide("Container-Runtime", "Version of the container runtime"),
}

func nodeRow(node *corev1.Node) metav1.TableRow {
	state := "Unknown"
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		state = "NotReady"
		if c.Status == corev1.ConditionTrue {
			state = "Ready"
		}
	}
	if node.Spec.Unschedulable {
		state += ",SchedulingDisabled"
	}
	info := node.Status.NodeInfo
	kernel := or(info.KernelVersion, "<unknown>")
	if info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	return cells(node.Name, state, or(strings.Join(roles(node), ","), "<none>"), since(node.CreationTimestamp), info.KubeletVersion,
		address(node, corev1.NodeInternalIP), address(node, corev1.NodeExternalIP),
		or(info.OSImage, "<unknown>"), kernel, or(info.ContainerRuntimeVersion, "<unknown>"))
}

func roles(node *corev1.Node) []string {
	var found []string
	for label, value := range node.Labels {
		if role, ok := strings.CutPrefix(label, rolePrefix); ok && role != "" {
			found = append(found, role)
		} else if label == roleLabel && value != "" {
			found = append(found, value)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func address(node *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range node.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return "<none>"
}
