package localapi

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// lookEvery is the pace of looking at the link and at kubelet's files, jittered to
	// up to twice: many nodes lose the same API server.
	lookEvery = time.Second
	// quiet is the silence after which a connected link is asked.
	quiet = 5 * time.Second
	// probeTimeout bounds a question: together with quiet it is the limit of silence.
	probeTimeout = silenceLimit - quiet
	// searchTimeout bounds one while cut off, on its own connection.
	searchTimeout = 3 * time.Second
)

// watchLink keeps the state of the link true until ctx ends.
func (u *upstream) watchLink(ctx context.Context) {
	for ctx.Err() == nil {
		u.reread()
		u.look(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(wait.Jitter(lookEvery, 1)):
		}
	}
}

// look asks the API server if its silence calls for it.
func (u *upstream) look(ctx context.Context) {
	state, _ := u.link.State()
	switch {
	case state == CutOff:
		u.renew()
		u.probe(ctx, searchTimeout)
	case state == Unknown || u.link.Silence() >= quiet:
		u.probe(ctx, probeTimeout)
		_, _ = u.link.State() // silence has an effect when the state is asked for
	}
}

// probe asks whether the API server is ready. The link hears of the outcome.
func (u *upstream) probe(ctx context.Context, timeout time.Duration) {
	identity := u.identity()
	if identity == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, identity.Server.JoinPath("readyz").String(), nil)
	if err != nil {
		return
	}
	u.mu.Lock()
	transport := u.route.transport(node, false)
	u.mu.Unlock()
	response, err := transport.RoundTrip(request)
	if err != nil {
		u.link.Failed(err)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode < http.StatusInternalServerError {
		u.link.Answered()
	}
}
