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

// afresh asks at once: there is a way to the API server that there was not before.
func (u *upstream) afresh(ctx context.Context) {
	u.mu.Lock()
	if u.giveUp != nil {
		// What was asked before that can only fail, and would be taken for its answer.
		u.giveUp()
	}
	u.mu.Unlock()
	if u.link.Anew() {
		u.renew()
		u.probe(ctx, probeTimeout)
	}
}

// look asks the API server if its silence calls for it.
func (u *upstream) look(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	u.mu.Lock()
	u.giveUp = cancel
	u.mu.Unlock()
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
