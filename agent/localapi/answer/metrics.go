package answer

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/snapshot"
)

// Sources of an answer.
const (
	sourceLocal    = "local"
	sourceUpstream = "upstream"
	sourceNone     = "none"
)

// otherResource stands for all that the node neither holds nor takes writes of: a client may
// ask for names without end.
const otherResource = "other"

// Metrics counts requests, as docs/metrics.md describes it. A nil one counts nothing.
type Metrics struct {
	requests *prometheus.CounterVec
}

// NewMetrics makes the counters and registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rekindle_local_api_requests_total",
		Help: "Requests for resources to the local API, by resource (other: one that the node does not hold), verb and source of the answer (local, upstream, none: 503).",
	}, []string{"resource", "verb", "source"})}
	return m, registry.Register(m.requests)
}

// verbs that are told apart.
var verbs = map[string]bool{
	"get": true, "list": true, "watch": true, "create": true, "update": true, "patch": true, "delete": true, "deletecollection": true,
}

// count counts a request once it is known who answers it: a watch has only begun then.
func (h *Handler) count(info *request.RequestInfo, source string) {
	if h.Metrics == nil {
		return
	}
	resource, verb := otherResource, info.Verb
	if h.writerOf(info) != nil || getOnly[resourceOf(info).GroupResource()] || h.Objects.Known(snapshot.Scope{Resource: resourceOf(info)}) ||
		h.Objects.Known(scopeOf(info)) {
		resource = resourceOf(info).GroupResource().String()
		if info.Subresource != "" {
			resource += "/" + info.Subresource
		}
	}
	if !verbs[verb] {
		verb = "other"
	}
	h.Metrics.requests.WithLabelValues(resource, verb, source).Inc()
}

// passed counts a request that the server passes on, or refuses if it knows that the API
// server is out of reach.
func (h *Handler) passed(info *request.RequestInfo) {
	source := sourceUpstream
	if reach, _ := h.Upstream.Reach(); reach == CutOff {
		source = sourceNone
	}
	h.count(info, source)
}

// metrics answers /metrics with the agent's own. Who may read it is asked as of any path.
func (h *Handler) metrics(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, caller Caller) bool {
	if h.Exposition == nil || info.Path != "/metrics" {
		return false
	}
	if err := h.Access.Check(r.Context(), caller, info); err != nil {
		fail(w, r, err)
		return true
	}
	h.Exposition.ServeHTTP(w, r)
	return true
}
