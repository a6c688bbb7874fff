package mirror

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/api/v1alpha1"
)

// name is the resource alone: which secrets a node has is nobody's business.
func (r refusedRead) name() string { return r.scope.Resource.GroupResource().String() }

func (s standing) findings() []v1alpha1.Finding {
	var all []v1alpha1.Finding
	add := func(f v1alpha1.Finding) {
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	if s.other != nil {
		add(v1alpha1.Finding{
			Reason: v1alpha1.ReasonOtherCluster, Severity: v1alpha1.SeverityBlocksNode,
			Message: "The Node and the Service default/kubernetes have other UIDs than before. If the node has moved to another cluster, stop the agent and remove its state directory; else look which API server answers.",
		})
	}
	if s.doubt != "" {
		add(v1alpha1.Finding{
			Reason: v1alpha1.ReasonPodListHeld, Severity: v1alpha1.SeveritySlows,
			Message: fmt.Sprintf("%d pods of this node are missing at the API server and kept: %s. Restore them, or wait until they are given up.", s.held, s.doubt),
		})
	}
	slices.SortFunc(s.refused, func(a, b refusedRead) int { return strings.Compare(a.name(), b.name()) })
	for _, r := range s.refused {
		add(r.finding())
	}
	slices.SortFunc(s.large, func(a, b refusedRead) int { return strings.Compare(a.name(), b.name()) })
	for _, l := range s.large {
		add(v1alpha1.Finding{
			Reason: v1alpha1.ReasonWarmListTooLarge, Severity: v1alpha1.SeveritySlows, Object: l.name(),
			Message: "Nothing of this entry of cacheWarmup.resources is kept: " + l.why + ". Name its namespaces, or select by labels what the node needs.",
		})
	}
	if s.issuer != "" {
		add(v1alpha1.Finding{
			Reason: v1alpha1.ReasonReadRefused, Severity: v1alpha1.SeveritySlows, Object: "nonResourceURL/openid/v1/jwks",
			Message: "The node may not get /openid/v1/jwks and /.well-known/openid-configuration, so service account tokens cannot be checked while it is cut off. Apply config/rbac.",
		})
	}
	expired := s.tokens.expired
	if s.now.Sub(s.tokens.lastExpired) < expiredShown {
		expired = max(expired, s.tokens.replayedExpired)
	}
	if expired > 0 {
		add(v1alpha1.Finding{
			Reason: v1alpha1.ReasonTokenExpired, Severity: v1alpha1.SeveritySlows,
			Message: "Service account tokens of this node's pods have run out, or had when they were replayed while it was cut off: their pods start, and what they ask of the API server is refused until it answers again.",
		})
	}
	for _, pod := range s.tokens.omitted {
		add(v1alpha1.Finding{
			Reason: v1alpha1.ReasonTokensOmitted, Severity: v1alpha1.SeverityBlocksPod, Pod: pod,
			Message: "The pod has a token volume and the policy's serviceAccountTokens is Omit: it does not start while the node is cut off.",
		})
	}
	return all
}

// finding names the resource and the rule that is missing.
func (r refusedRead) finding() v1alpha1.Finding {
	resource := r.scope.Resource
	f := v1alpha1.Finding{Reason: v1alpha1.ReasonReadRefused, Severity: v1alpha1.SeveritySlows, Object: resource.GroupResource().String()}
	rule := fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [get, list, watch]}", resource.Group, resource.Resource)
	switch {
	case r.warm && resource.Version == "":
		f.Message = fmt.Sprintf("cacheWarmup.resources names %s, which the API server does not serve. Is the name the plural, and its CRD installed?", resource.GroupResource())
	case r.warm:
		f.Message = "cacheWarmup.resources needs the rule " + rule + " in a ClusterRole with the label rekindle.edge/aggregate-to-node: \"true\"."
	case resource == endpointSlices:
		f.Message = "The node needs the rule " + rule + ". Apply config/rbac."
	default:
		f.Severity = v1alpha1.SeverityBlocksPod
		if slices.Contains(append([]schema.GroupVersionResource{pods, nodes}, baseCollections...), resource) {
			f.Severity = v1alpha1.SeverityBlocksNode
		}
		f.Message = "The API server refuses the node, which the Node authorizer lets read " + rule + ". Is it switched on, and is the pod that refers to it still there?"
	}
	return f
}
