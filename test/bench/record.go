package main

import "time"

// A record is one run, as its JSON line. A time that was not reached is null.
type record struct {
	Case  string `json:"case"`
	Run   int    `json:"run"`
	Pods  int    `json:"pods"`
	Ready int    `json:"ready"`
	// FirstReady is the pod named firstPod, not whichever was first.
	FirstReady *int64 `json:"kubelet_to_first_ready_ms"`
	LastReady  *int64 `json:"kubelet_to_last_ready_ms"`
	BootToLast *int64 `json:"boot_to_last_ready_ms"`
	WAN        string `json:"wan"`
	Kubelet    string `json:"kubelet"`
	OK         bool   `json:"ok"`
	// Extra has every other figure; last_serving_ms is in all of them.
	Extra map[string]*int64 `json:"extra"`

	// serving counts the pods that the prober saw serve.
	serving int
}

const (
	lastServing    = "last_serving_ms"
	bootToKubelet  = "boot_to_kubelet_ms"
	staleSandboxes = "stale_sandboxes"
)

// observed is what one run saw, wall clock.
type observed struct {
	bootZero time.Time
	// kubeletZero is the zero of kubelet_to_*; the zero time when kubelet never started.
	kubeletZero time.Time
	// ready and serving have, by pod, the first time it was.
	ready, serving map[string]time.Time
}

// fill computes the figures of a run over the pods that it expects, the named first one first.
func (r *record) fill(pods []string, o observed) {
	r.Pods = len(pods)
	for _, pod := range pods {
		if _, ok := o.ready[pod]; ok {
			r.Ready++
		}
		if _, ok := o.serving[pod]; ok {
			r.serving++
		}
	}
	r.FirstReady = latest(pods[:1], o.ready, o.kubeletZero)
	r.LastReady = latest(pods, o.ready, o.kubeletZero)
	r.BootToLast = latest(pods, o.ready, o.bootZero)
	r.setExtra(lastServing, latest(pods, o.serving, o.kubeletZero))
	r.setExtra(bootToKubelet, since(o.kubeletZero, o.bootZero))
}

func (r *record) setExtra(name string, value *int64) {
	if r.Extra == nil {
		r.Extra = map[string]*int64{}
	}
	r.Extra[name] = value
}

// latest is the last of the pods' times after zero, null unless every pod has one.
func latest(pods []string, times map[string]time.Time, zero time.Time) *int64 {
	var last time.Time
	for _, pod := range pods {
		at, ok := times[pod]
		if !ok {
			return nil
		}
		if at.After(last) {
			last = at
		}
	}
	return since(last, zero)
}

func since(at, zero time.Time) *int64 {
	if at.IsZero() || zero.IsZero() {
		return nil
	}
	ms := at.Sub(zero).Milliseconds()
	return &ms
}
