package main

import "time"

// A record is one run, as its JSON line. A time that was not reached is null.
type record struct {
	Case  string `json:"case"`
	Run   int    `json:"run"`
	Pods  int    `json:"pods"`
	Ready int    `json:"ready"`
	// FirstReady is the youngest pod, not whichever was first.
	FirstReady *int64 `json:"kubelet_to_first_ready_ms"`
	LastReady  *int64 `json:"kubelet_to_last_ready_ms"`
	BootToLast *int64 `json:"boot_to_last_ready_ms"`
	WAN        string `json:"wan"`
	Kubelet    string `json:"kubelet"`
	OK         bool   `json:"ok"`
	// Extra has every other figure; last_serving_ms is in all those of a node that boots.
	Extra map[string]*float64 `json:"extra"`

	// serving counts the pods that the prober saw serve.
	serving int
}

const (
	lastServing       = "last_serving_ms"
	bootToKubelet     = "boot_to_kubelet_ms"
	staleSandboxes    = "stale_sandboxes"
	criticalLastReady = "critical_last_ready_ms"
)

// observed is what one run saw, wall clock.
type observed struct {
	bootZero time.Time
	// kubeletZero is the zero of kubelet_to_*; the zero time when kubelet never started.
	kubeletZero time.Time
	// ready and serving have, by pod, the first time it was.
	ready, serving map[string]time.Time
}

// fill computes the figures of a run over the pods that it expects, the named first one
// first, and the critical ones among the first.
func (r *record) fill(pods []string, critical int, o observed) {
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
	r.setExtraMS(lastServing, latest(pods, o.serving, o.kubeletZero))
	r.setExtraMS(bootToKubelet, since(o.kubeletZero, o.bootZero))
	if critical > 0 {
		r.setExtraMS(criticalLastReady, latest(pods[:critical], o.ready, o.kubeletZero))
	}
}

func (r *record) setExtra(name string, value float64) { r.putExtra(name, &value) }

// setExtraMS takes a time that may not have been reached.
func (r *record) setExtraMS(name string, ms *int64) {
	if ms == nil {
		r.putExtra(name, nil)
		return
	}
	r.setExtra(name, float64(*ms))
}

func (r *record) putExtra(name string, value *float64) {
	if r.Extra == nil {
		r.Extra = map[string]*float64{}
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
