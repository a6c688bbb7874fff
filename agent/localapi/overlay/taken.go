package overlay

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"rekindle.edge/agent/localapi/rawobject"
)

// A cache on the way may answer a write with what it had before, as an API server would answer
// one that changes nothing. What it has not passed on is still pending.

var errNotTaken = errors.New("the answer has neither a newer version nor the change: is there a cache between the node and the API server?")

// taken says whether an answer shows that a status was taken: the object has risen, or it has
// what every API server keeps of a status. One that is older may drop what it does not know.
func taken(resource string, live, written []byte, entry Entry) bool {
	before, after := rawobject.Of(live), rawobject.Of(written)
	was, err := strconv.ParseUint(before.Part("metadata").Text("resourceVersion"), 10, 64)
	is, err2 := strconv.ParseUint(after.Part("metadata").Text("resourceVersion"), 10, 64)
	if err != nil || err2 != nil || is < was || after.Part("metadata").Text("uid") != string(entry.UID) {
		return false
	}
	status := after.Part("status")
	return is > was || seen(merge(resource, status, rawobject.Of(entry.Status))) == seen(status)
}

// seen is the part of a status that no API server drops.
func seen(status rawobject.Fields) string {
	parts := []string{status.Text("phase"), status.Text("podIP"), status.Text("hostIP")}
	for list, names := range map[string][2]string{
		"conditions": {"type", "status"}, "containerStatuses": {"name", "containerID"}, "addresses": {"type", "address"},
	} {
		for _, item := range status.List(list) {
			parts = append(parts, list+" "+item.Text(names[0])+" "+item.Text(names[1]))
		}
	}
	slices.Sort(parts[3:])
	return strings.Join(parts, "\n")
}
