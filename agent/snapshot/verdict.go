package snapshot

// Trusted says whether the list of pods may be served, and if not, why: kubelet removes
// what a list lacks, so a list that may lack pods is worse than none.
func (o *Objects) Trusted() (bool, string) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for scope := range o.state.scopes {
		if scope.Resource == Pods {
			return true, ""
		}
	}
	return false, "no list of this node's pods was ever stored"
}
