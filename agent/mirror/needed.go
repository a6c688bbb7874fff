package mirror

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
)

// Needs is what a pod needs of the API when the node starts again.
type Needs struct {
	// Uses are the objects that it refers to, and those behind its claims as far as the
	// snapshot has them.
	Uses []Use
	// Tokens that its volumes and their drivers want.
	Tokens []snapshot.TokenKey
	// Drivers are the CSI drivers of its volumes.
	Drivers []string
}

// NeedsOf follows the references of one pod on the named node. A pod that has run to its
// end, or that is static, needs nothing.
func NeedsOf(node string, p *corev1.Pod, get func(schema.GroupVersionResource, string, string) (snapshot.Object, bool)) Needs {
	if p.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		return Needs{}
	}
	needs := needsOf(p)
	n := Needs{Uses: needs.uses, Drivers: slices.Clone(needs.drivers)}
	if class := p.Spec.RuntimeClassName; class != nil && *class != "" && !over(p) {
		n.Uses = append(n.Uses, Use{Scope: snapshot.Scope{Resource: runtimeClasses, Name: *class}, Place: "runtimeClassName"})
	}
	c := closeOver(node, []pod{{podName: podName{p.Namespace, p.Name, string(p.UID)}, account: p.Spec.ServiceAccountName, needs: needs}}, get)
	for _, set := range []objectSet{c.watched, c.got} {
		for scope := range set {
			if !needs.objects[scope] && scope.Name != "" && scope.Resource != csiNodes {
				n.Uses = append(n.Uses, Use{Scope: scope, Place: "a persistent volume"})
			}
		}
	}
	for scope := range needs.objects {
		if scope.Resource == claims {
			if driver := c.follow(node, scope, get); driver != "" {
				n.Drivers = append(n.Drivers, driver)
			}
		}
	}
	slices.Sort(n.Drivers)
	n.Drivers = slices.Compact(n.Drivers)
	if len(n.Drivers) > 0 {
		n.Uses = append(n.Uses, Use{Scope: snapshot.Scope{Resource: csiNodes, Name: node}, Place: "its CSI volumes"})
	}
	for _, tokens := range c.tokens {
		for _, source := range tokens.Sources {
			n.Tokens = append(n.Tokens, tokenKey(types.UID(tokens.Pod.UID), tokens.Pod.Namespace, tokens.Account, source.audiences(), source.ExpirationSeconds))
		}
	}
	return n
}

// Over says whether a pod has run to its end and is not started again.
func Over(p *corev1.Pod) bool { return over(p) }
