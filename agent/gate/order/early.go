package order

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// stuckTime is how long no pod of a stage may get further while a later stage holds one
// that it may need. It is longer than the 10 to 15 s after which kubelet tries again what
// has failed.
const stuckTime = 20 * time.Second

// early is the group up to which groups are opened early: the open one is stuck, and a
// pod of that group is held that it may need. 0: none.
func (p *planner) early(current int, left []*pod, now time.Duration) int {
	if len(left) == 0 || !p.stuck(current, now) {
		return 0
	}
	for c := range p.calls {
		group := c.pod.group
		if c.phase != making && group > current && p.mayNeed(left, c.pod) {
			return group
		}
	}
	return 0
}

// mayNeed says whether one of the pods may need another to get further: whoever has no
// sandbox may wait for what networks and volumes come from, which runs on the node's own
// network or as a part of the system; whoever runs may look for a service.
func (p *planner) mayNeed(left []*pod, held *pod) bool {
	serves := p.servedBy(held)
	for _, pod := range left {
		if !pod.started(p.running) && !p.made[pod.name] {
			if held.hostNetwork || held.namespace == systemNamespace || rank(held) < rank(&podOfNoRank) {
				return true
			}
			continue
		}
		for _, s := range serves {
			if s.namespace == systemNamespace || mentions(pod.raw, s, pod.namespace) {
				return true
			}
		}
	}
	return false
}

var podOfNoRank pod

// servedBy are the services that lead to a pod.
func (p *planner) servedBy(of *pod) []service {
	var found []service
	for _, s := range p.services {
		if s.selects(of) {
			found = append(found, s)
		}
	}
	return found
}

// mentions says whether the commands or the environment of a pod name a service.
func mentions(raw []byte, s service, from string) bool {
	return TextsOf(raw).Name(from, s.namespace, s.name.name)
}

// Texts are the commands, arguments and values of the environment of a pod's containers.
type Texts []string

// TextsOf reads them from a pod's JSON; one that does not decode has none.
func TextsOf(raw []byte) Texts {
	type container struct {
		Command []string `json:"command"`
		Args    []string `json:"args"`
		Env     []struct {
			Value string `json:"value"`
		} `json:"env"`
	}
	var object struct {
		Spec struct {
			Containers     []container `json:"containers"`
			InitContainers []container `json:"initContainers"`
		} `json:"spec"`
	}
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	var texts Texts
	for _, c := range append(object.Spec.Containers, object.Spec.InitContainers...) {
		texts = append(append(texts, c.Command...), c.Args...)
		for _, e := range c.Env {
			if e.Value != "" {
				texts = append(texts, e.Value)
			}
		}
	}
	return texts
}

// Name says whether they name a service, as a pod of the namespace from would.
func (t Texts) Name(from, namespace, name string) bool {
	if namespace != from {
		name += "." + namespace
	}
	return slices.ContainsFunc(t, func(text string) bool { return hasWord(text, name) })
}

// hasWord says whether a text has a name that is not a part of a longer one.
func hasWord(text, word string) bool {
	inName := func(b byte) bool { return b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' }
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(word)
		if (begin == 0 || !inName(text[begin-1]) && text[begin-1] != '.') && (end == len(text) || !inName(text[end])) {
			return true
		}
		at = begin + 1
	}
}
