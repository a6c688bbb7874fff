package overlay

import (
	"bytes"
	"encoding/json"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
)

// Slice is an EndpointSlice with the addresses and the readiness that pods of this node
// have by what kubelet wrote here. Others keep what the slice says. It returns the slice
// itself if there is nothing to change.
func Slice(slice []byte, statusOf func(namespace, name string, uid types.UID) (json.RawMessage, bool)) []byte {
	object, err := decode(slice)
	if err != nil {
		return slice
	}
	endpoints := object.list("endpoints")
	changed := false
	for _, endpoint := range endpoints {
		target := endpoint.part("targetRef")
		if target.text("kind") != "Pod" {
			continue
		}
		status, ok := statusOf(target.text("namespace"), target.text("name"), types.UID(target.text("uid")))
		if !ok {
			continue
		}
		pod, err := decode(status)
		if err != nil {
			continue
		}
		changed = repoint(endpoint, pod, object.text("addressType")) || changed
	}
	if !changed {
		return slice
	}
	object["endpoints"], _ = json.Marshal(endpoints)
	return object.encode()
}

// repoint says whether it has changed the endpoint.
func repoint(endpoint, pod fields, family string) bool {
	before := endpoint.encode()
	ready := false
	for _, c := range pod.list("conditions") {
		ready = ready || c.text("type") == "Ready" && c.text("status") == "True"
	}
	addresses := addressesOf(pod, family)
	if len(addresses) > 0 {
		endpoint["addresses"], _ = json.Marshal(addresses)
	}
	// Without an address of this boot nothing answers at the one from before.
	ready = ready && len(addresses) > 0
	conditions := endpoint.part("conditions")
	conditions["ready"], _ = json.Marshal(ready)
	conditions["serving"] = conditions["ready"]
	endpoint["conditions"] = conditions.encode()
	return !bytes.Equal(before, endpoint.encode())
}

func addressesOf(pod fields, family string) []string {
	var addresses []string
	for _, ip := range pod.list("podIPs") {
		address, err := netip.ParseAddr(ip.text("ip"))
		if err == nil && address.Is4() == (family == "IPv4") {
			addresses = append(addresses, address.String())
		}
	}
	return addresses
}
