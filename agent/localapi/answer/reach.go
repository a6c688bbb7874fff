package answer

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
)

// Patience is how long an answer of the API server is waited for when the node could give
// one itself. Kubelet's loops over all pods stand still meanwhile.
const Patience = time.Second

// Reach says how the API server can be reached.
type Reach int

// Undecided is the state from the agent's start until something was heard.
const (
	Undecided Reach = iota
	Linked
	CutOff
)

// Upstream passes requests on.
type Upstream interface {
	// Reach of the API server, and for how long it has been silent.
	Reach() (Reach, time.Duration)
	// Pass passes a request on, however long that takes.
	Pass(w http.ResponseWriter, r *http.Request)
	// Try passes a request on. It returns an error if there was no answer within the
	// patience, or none that came from the API server itself; nothing has been written
	// then.
	Try(w http.ResponseWriter, r *http.Request, patience time.Duration) error
}

// doubt remembers that an answer did not come in time. Until something is heard again, no
// other request waits for one.
type doubt struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	since time.Time
}

func (d *doubt) raise() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = d.clock.Now()
}

// justified says whether nothing was heard since.
func (d *doubt) justified(silence time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.since.IsZero() && d.clock.Now().Add(-silence).Before(d.since)
}

// reach is Upstream's, with the doubt taken in. An API server that was not heard within the
// freshness wait is not waited for by each request anew, and one that there is no way to not
// at all.
func (h *Handler) reach() Reach {
	reach, silence := h.Upstream.Reach()
	if until, ok := h.freshUntil(); reach == Undecided && h.FreshnessWait != nil && (!ok || h.doubt.clock.Now().After(until)) {
		return CutOff
	}
	if reach != CutOff && h.doubt.justified(silence) {
		return CutOff
	}
	return reach
}

// freshUntil is when the freshness wait ends. It counts from when an answer could first have
// been had; false while none can be.
func (h *Handler) freshUntil() (time.Time, bool) {
	if h.FreshnessWait == nil {
		return time.Time{}, false
	}
	since := h.started
	if h.Uplink != nil {
		up, ok := h.Uplink()
		if !ok {
			return time.Time{}, false
		}
		if up.After(since) {
			since = up
		}
	}
	return since.Add(h.FreshnessWait()), true
}

// try asks upstream first. It says whether that has answered.
func (h *Handler) try(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) bool {
	if h.reach() == CutOff {
		return false
	}
	err := h.Upstream.Try(w, r, Patience)
	if err == nil {
		h.count(info, sourceUpstream)
		return true
	}
	h.doubt.raise()
	h.Log.V(4).Info("API server gave no answer in time, the node answers", "method", r.Method, "path", r.URL.Path, "reason", err.Error())
	return false
}
