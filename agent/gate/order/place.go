package order

import "rekindle.edge/api/v1alpha1"

// Places gives a pod's place in a start by this ordering, counted from the group that starts
// first, and the group's name. A pod that does not decode comes last. Without stages every
// pod has the same place.
func Places(ordering v1alpha1.StartupOrdering) (func(raw []byte) (place int, name string), error) {
	groups, _, err := groupsOf(ordering, 1)
	if err != nil {
		return nil, err
	}
	last := len(groups) - 1
	return func(raw []byte) (int, string) {
		if pod, err := viewPod(raw); err == nil {
			for place, group := range groups {
				if group.selects(&pod) {
					return place, group.name
				}
			}
		}
		return last, groups[last].name
	}, nil
}
