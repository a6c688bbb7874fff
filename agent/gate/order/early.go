package order

import (
	"encoding/json"
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
		return false
	}
	wanted := s.name.name
	if s.namespace != from {
		wanted += "." + s.namespace
	}
	for _, c := range append(object.Spec.Containers, object.Spec.InitContainers...) {
		texts := append(append([]string{}, c.Command...), c.Args...)
		for _, e := range c.Env {
			texts = append(texts, e.Value)
		}
		for _, text := range texts {
			if hasWord(text, wanted) {
				return true
			}
		}
	}
	return false
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
