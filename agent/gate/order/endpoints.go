package order

import (
	"encoding/json"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// endpoint is what the local API tells of how a pod is reached.
type endpoint struct {
	pod       string // UID
	addresses []string
	ready     bool
}

// viewSlice reads the endpoints of pods in an EndpointSlice.
func viewSlice(raw []byte) ([]endpoint, error) {
	var slice struct {
		Endpoints []discoveryv1.Endpoint `json:"endpoints"`
	}
	if err := json.Unmarshal(raw, &slice); err != nil {
		return nil, err
	}
	var endpoints []endpoint
	for _, e := range slice.Endpoints {
		if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
			continue
		}
		endpoints = append(endpoints, endpoint{
			pod: string(e.TargetRef.UID), addresses: e.Addresses,
			ready: e.Conditions.Ready == nil || *e.Conditions.Ready,
		})
	}
	return endpoints, nil
}

// service selects pods.
type service struct {
	name
	selector labels.Set
}

func viewService(raw []byte) (service, error) {
	var object struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Selector map[string]string `json:"selector"`
		} `json:"spec"`
	}
	err := json.Unmarshal(raw, &object)
	return service{name{object.Metadata.Namespace, object.Metadata.Name}, object.Spec.Selector}, err
}

func (s service) selects(p *pod) bool {
	return len(s.selector) > 0 && s.namespace == p.namespace && s.selector.AsSelectorPreValidated().Matches(p.labels)
}

// reachable says whether every endpoint that leads to the pod leads to where it is now. A
// pod that no slice has an endpoint of is not waited for: while cut off, nobody makes one.
func reachable(p *pod, served map[name][]endpoint) bool {
	for _, slice := range served {
		for _, e := range slice {
			if e.pod != p.uid {
				continue
			}
			if !e.ready || !slices.ContainsFunc(e.addresses, func(a string) bool { return slices.Contains(p.ips, a) }) {
				// One of the two families may be missing from the pod, not both.
				return false
			}
		}
	}
	return true
}
