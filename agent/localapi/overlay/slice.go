package overlay

import (
	"bytes"
	"encoding/json"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/localapi/rawobject"
)

// Slice is an EndpointSlice with the addresses and the readiness that pods of this node
// have by what kubelet wrote here. Others keep what the slice says. It returns the slice
// itself if there is nothing to change.
func Slice(slice []byte, statusOf func(namespace, name string, uid types.UID) (json.RawMessage, bool)) []byte {
	object, err := rawobject.Decode(slice)
	if err != nil {
		return slice
	}
	endpoints := object.List("endpoints")
	changed := false
	for _, endpoint := range endpoints {
		target := endpoint.Part("targetRef")
		if target.Text("kind") != "Pod" {
			continue
		}
		status, ok := statusOf(target.Text("namespace"), target.Text("name"), types.UID(target.Text("uid")))
		if !ok {
			continue
		}
		pod, err := rawobject.Decode(status)
		if err != nil {
			continue
		}
		changed = repoint(endpoint, pod, object.Text("addressType")) || changed
	}
	if !changed {
		return slice
	}
	object["endpoints"], _ = json.Marshal(endpoints)
	return object.Encode()
}

// repoint says whether it has changed the endpoint.
func repoint(endpoint, pod rawobject.Fields, family string) bool {
	before := endpoint.Encode()
	ready := false
	for _, c := range pod.List("conditions") {
		ready = ready || c.Text("type") == "Ready" && c.Text("status") == "True"
	}
	addresses := addressesOf(pod, family)
	if len(addresses) > 0 {
		endpoint["addresses"], _ = json.Marshal(addresses)
	}
	// Without an address of this boot nothing answers at the one from before.
	ready = ready && len(addresses) > 0
	conditions := endpoint.Part("conditions")
	conditions["ready"], _ = json.Marshal(ready)
	conditions["serving"] = conditions["ready"]
	endpoint["conditions"] = conditions.Encode()
	return !bytes.Equal(before, endpoint.Encode())
}

func addressesOf(pod rawobject.Fields, family string) []string {
	var addresses []string
	for _, ip := range pod.List("podIPs") {
		address, err := netip.ParseAddr(ip.Text("ip"))
		if err == nil && address.Is4() == (family == "IPv4") {
			addresses = append(addresses, address.String())
		}
	}
	return addresses
}
