package readiness

import (
	"slices"
	"time"

	"rekindle.edge/api/v1alpha1"
)

// Forecast is the recovery time to expect of the next restart that is cut off: the median
// (the lower one of two) of this node's own complete recoveries that began so. Nil: there is
// none yet, and nobody else's history says anything of this node.
func Forecast(recoveries []v1alpha1.Recovery) *v1alpha1.Forecast {
	var totals []int64
	for _, r := range recoveries {
		if r.Result == v1alpha1.RecoveryComplete && r.ConnectivityAtStart == v1alpha1.ConnectivityOffline && r.TotalMilliseconds != nil {
			totals = append(totals, *r.TotalMilliseconds)
		}
	}
	if len(totals) == 0 {
		return nil
	}
	slices.Sort(totals)
	return &v1alpha1.Forecast{TotalMilliseconds: totals[(len(totals)-1)/2], BasedOn: int32(len(totals))}
}

// SurvivesUntil is the first expiry that would break a restart which is cut off, or the way
// back into the cluster after it; zero: none is known. That is a CNI plugin's credential for
// the local API (no pod gets an address), and what kubelet and the API server know each other
// by (the pods come back, the node does not). Not among them:
//
//   - the local API's own certificates are valid until 9999;
//   - service account tokens: expired ones are replayed too, and volumes mount. What a pod
//     asks of the local API is refused then, with or without a restart.
func SurvivesUntil(facts Facts) time.Time {
	node := facts.Node
	if node.CNI.Asks != "" {
		return time.Time{} // broken already
	}
	var first time.Time
	for _, end := range []time.Time{node.CNI.CredentialEnds, node.Certificate.NotAfter, node.Authority.NotAfter} {
		if !end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}
