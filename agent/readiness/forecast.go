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

// SurvivesUntil is the first expiry that would break a restart which is cut off; zero: none
// is known. Of what a node holds only a CNI plugin's credential for the local API does:
//
//   - kubelet's client certificate does not: kubelet starts with an expired one, and the
//     local API knows it by its key;
//   - the local API's own certificates are valid until 9999;
//   - service account tokens do not: expired ones are replayed too, and volumes mount. What
//     a pod asks of the local API is refused then, with or without a restart;
//   - the API server's certificates matter to a node that reaches it.
func SurvivesUntil(facts Facts) time.Time {
	if facts.Node.CNI.Asks != "" {
		return time.Time{} // broken already
	}
	return facts.Node.CNI.CredentialEnds
}
