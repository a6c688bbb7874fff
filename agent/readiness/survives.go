package readiness

import "time"

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
