package order

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Annotations of a static pod: on its mirror at the API server, and on the pod as kubelet
// itself knows it.
const (
	mirrorAnnotation = "kubernetes.io/config.mirror"
	sourceAnnotation = "kubernetes.io/config.source"
	sourceAPI        = "api"
)

const (
	nodeCritical    = "system-node-critical"
	clusterCritical = "system-cluster-critical"
	// criticalPriority is that of the least of the two: no user's class reaches it.
	criticalPriority = 2_000_000_000
	systemNamespace  = "kube-system"
)

// name of a pod. It stays the same when the mirror of a static pod is made anew.
type name struct{ namespace, name string }

func (n name) String() string { return n.namespace + "/" + n.name }

// pod is what the order needs of a pod.
type pod struct {
	name
	uid           string
	labels        labels.Set
	static        bool
	hostNetwork   bool
	priorityClass string
	priority      int32
	created       time.Time
	// group is the index of the pod's group.
	group int

	// deleting, and over: Succeeded or Failed.
	deleting, over bool
	// ends is when its activeDeadlineSeconds are over, zero if it has none.
	ends time.Time
	// ready by its status.
	ready bool
	// containers are the ids that the status speaks of, empty for one that there is not.
	containers []string
	ips        []string
	raw        []byte
}

// podObject is the part of a pod's JSON that is read.
type podObject struct {
	Metadata struct {
		Namespace         string            `json:"namespace"`
		Name              string            `json:"name"`
		UID               string            `json:"uid"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		CreationTimestamp metav1.Time       `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		HostNetwork       bool   `json:"hostNetwork"`
		PriorityClassName string `json:"priorityClassName"`
		Priority          int32  `json:"priority"`
		ActiveDeadline    *int64 `json:"activeDeadlineSeconds"`
	} `json:"spec"`
	Status struct {
		Phase      corev1.PodPhase `json:"phase"`
		StartTime  *metav1.Time    `json:"startTime"`
		Conditions []struct {
			Type   corev1.PodConditionType `json:"type"`
			Status corev1.ConditionStatus  `json:"status"`
		} `json:"conditions"`
		ContainerStatuses []struct {
			ContainerID string `json:"containerID"`
		} `json:"containerStatuses"`
		PodIPs []struct {
			IP string `json:"ip"`
		} `json:"podIPs"`
	} `json:"status"`
}

// viewPod reads a pod's JSON, which it keeps.
func viewPod(raw []byte) (pod, error) {
	var object podObject
	if err := json.Unmarshal(raw, &object); err != nil {
		return pod{}, err
	}
	_, mirror := object.Metadata.Annotations[mirrorAnnotation]
	p := pod{
		name: name{object.Metadata.Namespace, object.Metadata.Name}, uid: object.Metadata.UID,
		labels: object.Metadata.Labels, static: mirror, hostNetwork: object.Spec.HostNetwork,
		priorityClass: object.Spec.PriorityClassName, priority: object.Spec.Priority, created: object.Metadata.CreationTimestamp.Time,
		deleting: object.Metadata.DeletionTimestamp != nil,
		over:     object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed,
		raw:      raw,
	}
	if d, start := object.Spec.ActiveDeadline, object.Status.StartTime; d != nil && !start.IsZero() {
		p.ends = start.Add(time.Duration(*d) * time.Second)
	}
	for _, c := range object.Status.Conditions {
		p.ready = p.ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	for _, c := range object.Status.ContainerStatuses {
		_, id, _ := strings.Cut(c.ContainerID, "://")
		p.containers = append(p.containers, id)
	}
	for _, ip := range object.Status.PodIPs {
		p.ips = append(p.ips, ip.IP)
	}
	return p, nil
}

// never says whether the pod will not start any more. Kubelet starts static pods whatever
// their mirror says.
func (p *pod) never() bool { return p.deleting || p.over && !p.static }

// started says whether every container was started in this boot.
func (p *pod) started(inThisBoot map[string]bool) bool {
	return len(p.containers) > 0 && !slices.ContainsFunc(p.containers, func(id string) bool { return !inThisBoot[id] })
}

// critical pods come before all stages that do not name them.
func (p *pod) critical() bool { return p.static || p.priority >= criticalPriority }

// byImportance puts the most important pod first: static ones, the two critical classes,
// then by priority, then the older one.
func byImportance(a, b *pod) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.priority, a.priority), a.created.Compare(b.created),
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name.name, b.name.name))
}

func rank(p *pod) int {
	switch {
	case p.static:
		return 0
	case p.priorityClass == nodeCritical:
		return 1
	case p.priorityClass == clusterCritical:
		return 2
	}
	return 3
}
