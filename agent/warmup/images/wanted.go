package images

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rekindle.edge/api/v1alpha1"
)

// systemPriority is that of system-cluster-critical; pods from there on come first.
const systemPriority = 2000000000

// want is an image that is to be on the node.
type want struct {
	// reference is normal.
	reference string
	// digest that a pod runs, if kubelet has told one that a registry knows.
	digest string
	// secrets that may help to pull it, as namespace/name.
	secrets []string
	// secret says that a secret may be used: kubelet has pulled the image for a pod before,
	// or the policy names it. A first pull with a secret is kubelet's, which notes
	// who may use the image; one that it finds on the node is open to every pod.
	secret bool
	// pods says that a pod uses it.
	pods bool
}

// wanted are the images of pods, and the policy's, the most important first, each once.
func wanted(spec *v1alpha1.NodeRecoverySpec, pods []*corev1.Pod) []want {
	if spec == nil {
		return nil
	}
	policy := spec.CacheWarmup.Images
	var all []want
	index := map[string]int{}
	add := func(w want) {
		i, known := index[w.reference]
		if !known {
			index[w.reference] = len(all)
			all = append(all, w)
			return
		}
		old := &all[i]
		old.digest = cmp.Or(old.digest, w.digest)
		for _, secret := range w.secrets {
			if !slices.Contains(old.secrets, secret) {
				old.secrets = append(old.secrets, secret)
			}
		}
		old.secret, old.pods = old.secret || w.secret, old.pods || w.pods
	}
	var secrets []string
	if policy.FromWorkloads != v1alpha1.ToggleDisabled {
		for _, pod := range inOrder(spec.StartupOrdering.Stages, pods) {
			for _, w := range imagesOf(pod) {
				add(w)
			}
		}
	}
	for _, pod := range pods {
		secrets = append(secrets, secretsOf(pod)...)
	}
	slices.Sort(secrets)
	for _, reference := range policy.Extra {
		add(want{reference: normal(reference), secrets: slices.Compact(secrets), secret: true})
	}
	return all
}

// inOrder puts pods in the order in which they are to start.
func inOrder(stages []v1alpha1.Stage, pods []*corev1.Pod) []*corev1.Pod {
	type ranked struct {
		pod   *corev1.Pod
		stage int
	}
	var all []ranked
	for _, pod := range pods {
		all = append(all, ranked{pod, stageOf(stages, pod)})
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(
			cmp.Compare(a.stage, b.stage),
			cmp.Compare(priority(b.pod), priority(a.pod)),
			created(a.pod).Compare(created(b.pod)),
			strings.Compare(a.pod.Namespace+"/"+a.pod.Name, b.pod.Namespace+"/"+b.pod.Name),
		)
	})
	sorted := make([]*corev1.Pod, len(all))
	for i := range all {
		sorted[i] = all[i].pod
	}
	return sorted
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

func created(pod *corev1.Pod) time.Time { return pod.CreationTimestamp.Time }

// stageOf is the stage that names the pod; -1 for those that come before all stages, and
// after the last for those of none.
func stageOf(stages []v1alpha1.Stage, pod *corev1.Pod) int {
	for i, stage := range stages {
		if slices.ContainsFunc(stage.Pods, func(s v1alpha1.PodSelector) bool { return selects(s, pod) }) {
			return i
		}
	}
	if static(pod) || priority(pod) >= systemPriority {
		return -1
	}
	return len(stages)
}

func static(pod *corev1.Pod) bool {
	source := pod.Annotations["kubernetes.io/config.source"]
	return source != "" && source != "api"
}

func selects(s v1alpha1.PodSelector, pod *corev1.Pod) bool {
	if len(s.Namespaces) > 0 && !slices.Contains(s.Namespaces, pod.Namespace) ||
		len(s.PriorityClassNames) > 0 && !slices.Contains(s.PriorityClassNames, pod.Spec.PriorityClassName) ||
		s.Source == v1alpha1.PodSourceStatic && !static(pod) {
		return false
	}
	if s.LabelSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// imagesOf are the images of a pod's containers, of every kind, and of its image volumes.
func imagesOf(pod *corev1.Pod) []want {
	ran := map[string]string{} // image that kubelet has used, by container
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		ran[status.Name] = status.ImageID
	}
	secrets := secretsOf(pod)
	var all []want
	add := func(container, image string) {
		if image == "" {
			return
		}
		w := want{reference: normal(image), secrets: secrets, secret: ran[container] != "", pods: true}
		if repo, digest, ok := strings.Cut(ran[container], "@"); ok && repo == repository(w.reference) {
			w.digest = digest
		}
		all = append(all, w)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		add(c.Name, c.Image)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		add(c.Name, c.Image)
	}
	for _, v := range pod.Spec.Volumes {
		if v.Image != nil {
			add("", v.Image.Reference)
		}
	}
	return all
}

func secretsOf(pod *corev1.Pod) []string {
	var all []string
	for _, secret := range pod.Spec.ImagePullSecrets {
		if secret.Name != "" {
			all = append(all, pod.Namespace+"/"+secret.Name)
		}
	}
	return all
}

// over says that a pod has run to its end: its images are not wanted.
func over(pod *corev1.Pod) bool {
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return finished && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
}
