package torture

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
)

// model is what the store should hold, a line for every fact. It is read from a store, and
// it foretells what the next step makes of it.
type model map[string]string

var (
	services = corev1.SchemeGroupVersion.WithResource("services")
	allPods  = snapshot.Scope{Resource: snapshot.Pods}
)

const (
	podNames, otherNames = 8, 4
	tokenPrefix          = "token "
)

func secretScope(name string) snapshot.Scope {
	return snapshot.Scope{Resource: snapshot.Secrets, Namespace: "n", Name: name}
}

// read tells all that a store has.
func read(o *snapshot.Objects) model {
	m := model{}
	for _, resource := range []struct {
		prefix string
		gvr    snapshot.Scope
	}{{"pod ", allPods}, {"service ", snapshot.Scope{Resource: services}}, {"secret ", snapshot.Scope{Resource: snapshot.Secrets}}} {
		objects, _ := o.List(resource.gvr.Resource)
		for _, object := range objects {
			value := string(object.UID) + " " + object.ResourceVersion
			if want := raw(object.Name, value); string(object.Raw) != want {
				value = "torn: " + string(object.Raw)
			}
			m[resource.prefix+object.Name] = value
		}
	}
	for i := range otherNames {
		if name := fmt.Sprint("s", i); o.Known(secretScope(name)) {
			m["known "+name] = ""
		}
	}
	if o.Known(allPods) {
		m["known pods"] = ""
	}
	for key, token := range o.Tokens() {
		m[tokenPrefix+string(key.PodUID)] = token.Token
	}
	for key, value := range o.Overlays() {
		m["overlay "+key.Name] = string(value)
	}
	return m
}

func (m model) String() string {
	var lines []string
	for key, value := range m {
		lines = append(lines, key+" = "+value)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// pods are the UIDs of the pods.
func (m model) pods() map[string]bool {
	found := map[string]bool{}
	for key, value := range m {
		if strings.HasPrefix(key, "pod ") {
			uid, _, _ := strings.Cut(value, " ")
			found[uid] = true
		}
	}
	return found
}

// raw is big enough that objects need pages of their own.
func raw(name, value string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"value":%q,"filler":%q}`, name, value, strings.Repeat("x", 3000+len(name)*97))
}

func object(name, uid string, step int) snapshot.Object {
	version := fmt.Sprint(step)
	return snapshot.Object{
		Namespace: "n", Name: name, UID: types.UID(uid), ResourceVersion: version, Raw: []byte(raw(name, uid+" "+version)),
	}
}

// step is one change: what it does to a store, what to the model, and whether it is on the
// disk when it returns.
type step struct {
	do      func(*snapshot.Objects) error
	model   model
	durable bool
}

// next is the step that a seed takes from a model.
func next(seed uint64, number int, before model) step {
	random := rand.New(rand.NewPCG(seed, uint64(number)))
	m := maps.Clone(before)
	uid := fmt.Sprintf("00000000-0000-4000-8000-%012d", number)
	pod := fmt.Sprint("p", random.IntN(podNames))
	other := fmt.Sprint("s", random.IntN(otherNames))
	if _, ok := m["known pods"]; !ok {
		m["known pods"] = ""
		return step{func(o *snapshot.Objects) error { return o.Sync(allPods, "1", nil) }, m, true}
	}
	old, exists := m["pod "+pod]
	oldUID, _, _ := strings.Cut(old, " ")
	apply := func(t snapshot.EventType, o2 snapshot.Object) func(*snapshot.Objects) error {
		return func(o *snapshot.Objects) error { return o.Apply(allPods, t, o2) }
	}
	set := func(prefix string, object snapshot.Object) {
		m[prefix+object.Name] = string(object.UID) + " " + object.ResourceVersion
	}
	switch kind := random.IntN(10); {
	case kind < 3 && !exists, kind == 3:
		// A new pod, or another one under the same name.
		created := object(pod, uid, number)
		delete(m, tokenPrefix+oldUID)
		set("pod ", created)
		return step{apply(snapshot.Added, created), m, true}
	case kind < 3:
		delete(m, "pod "+pod)
		delete(m, tokenPrefix+oldUID)
		return step{apply(snapshot.Deleted, object(pod, oldUID, number)), m, true}
	case kind == 4 && exists:
		changed := object(pod, oldUID, number)
		set("pod ", changed)
		return step{apply(snapshot.Modified, changed), m, false}
	case kind == 5 && exists:
		key := snapshot.TokenKey{PodUID: types.UID(oldUID), Namespace: "n"}
		_, replaced := m[tokenPrefix+oldUID]
		m[tokenPrefix+oldUID] = fmt.Sprint("t", number)
		return step{func(o *snapshot.Objects) error {
			return o.PutToken(key, snapshot.Token{Token: fmt.Sprint("t", number)})
		}, m, !replaced}
	case kind == 6:
		secret := object(other, uid, number)
		set("secret ", secret)
		m["known "+other] = ""
		return step{func(o *snapshot.Objects) error {
			return o.Sync(secretScope(other), fmt.Sprint(number), []snapshot.Object{secret})
		}, m, true}
	case kind == 7:
		delete(m, "secret "+other)
		delete(m, "known "+other)
		return step{func(o *snapshot.Objects) error { return o.Forget(secretScope(other)) }, m, false}
	case kind == 8:
		key := snapshot.OverlayKey{Resource: snapshot.Secrets, Namespace: "n", Name: other}
		m["overlay "+other] = fmt.Sprint("o", number)
		return step{func(o *snapshot.Objects) error {
			_, err := o.PutOverlay(key, fmt.Append(nil, "o", number))
			return err
		}, m, true}
	}
	service := object(other, "service-"+other, number)
	_, known := m["service "+other]
	set("service ", service)
	return step{func(o *snapshot.Objects) error {
		return o.Apply(snapshot.Scope{Resource: services}, snapshot.Modified, service)
	}, m, !known}
}
