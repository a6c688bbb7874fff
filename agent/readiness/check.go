package readiness

import (
	"fmt"
	"slices"

	"rekindle.edge/api/v1alpha1"
)

// maxMessage is the bound of a finding's message, in characters.
const maxMessage = 256

// findings collects.
type findings []v1alpha1.Finding

func (f *findings) add(reason string, severity v1alpha1.Severity, pod, object, format string, args ...any) {
	message := []rune(fmt.Sprintf(format, args...))
	*f = append(*f, v1alpha1.Finding{
		Reason: reason, Severity: severity, Pod: pod, Object: object, Message: string(message[:min(maxMessage, len(message))]),
	})
}

func (f *findings) node(reason string, severity v1alpha1.Severity, object, format string, args ...any) {
	f.add(reason, severity, "", object, format, args...)
}

// Check gives every reason why the node, or a pod of it, would not come back as it should.
// The same facts give the same findings, in the same order: of the node first, then pod by
// pod. Messages carry no figure that changes by itself.
func Check(facts Facts) []v1alpha1.Finding {
	var found findings
	found.store(facts)
	found.installation(facts)
	found.kubelet(facts)
	found.runtime(facts)
	found.disks(facts)
	found.missed(facts)
	for _, pod := range facts.Pods {
		found.objects(pod, facts)
		found.images(pod, facts)
		found.nature(pod, facts)
	}
	found.unpinned(facts)
	found.stages(facts)
	return slices.Clip(found)
}

func name(pod Pod) string { return pod.Namespace + "/" + pod.Name }

func (f *findings) missed(facts Facts) {
	told := map[string]bool{}
	for _, missed := range facts.Missed {
		resource := missed.Resource
		if missed.Group != "" {
			resource += "." + missed.Group
		}
		if !told[resource] {
			told[resource] = true
			f.node(v1alpha1.ReasonResourceMissed, v1alpha1.SeveritySlows, resource,
				"Clients on this node asked for %s while it was cut off and did not get it. If they need it, add it to cacheWarmup.resources.", resource)
		}
	}
}
