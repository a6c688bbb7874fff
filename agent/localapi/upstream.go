package localapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Kubelet's own default limits towards the API server. They are kept here, since kubelet's
// limit towards the local API is raised.
const (
	nodeQPS   = 50
	nodeBurst = 100
)

// upstream sends requests to the API server and tells the link how they went.
type upstream struct {
	source *IdentitySource
	link   *Link
	limit  *rate.Limiter

	mu    sync.Mutex
	route *route
	// giveUp ends the look at the API server that is under way.
	giveUp context.CancelFunc
	// problem is why the identity could not be read last.
	problem error
}

func newUpstream(source *IdentitySource, link *Link) *upstream {
	return &upstream{source: source, link: link, limit: rate.NewLimiter(nodeQPS, nodeBurst)}
}

// identity that requests are sent with, nil while none was readable.
func (u *upstream) identity() *Identity {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.route == nil {
		return nil
	}
	return u.route.identity
}

// reread takes up changes of kubelet's files.
func (u *upstream) reread() *Identity {
	identity, err := u.source.Read()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.problem = err
	if identity != nil && (u.route == nil || u.route.identity != identity) {
		u.replace(newRoute(identity))
	}
	return identity
}

// renew leaves connections behind that an outage may have broken without their knowing.
// Streams that run on them may still be saved by TCP and are left alone.
func (u *upstream) renew() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.route != nil {
		u.replace(newRoute(u.route.identity))
	}
}

func (u *upstream) replace(next *route) {
	if u.route != nil {
		u.route.retire()
	}
	u.route = next
}

// send sends a request with the credentials of the caller, and gives up waiting for its
// answer when the link is lost.
func (u *upstream) send(r *http.Request, c caller) (*http.Response, error) {
	u.mu.Lock()
	route, problem := u.route, u.problem
	u.mu.Unlock()
	if route == nil {
		return nil, fmt.Errorf("the node's identity is not known: %w", problem)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	waiting := u.link.Waiting()
	// Stopped once the answer is there: a stream that runs is not ended.
	stop := context.AfterFunc(waiting, func() { cancel(context.Cause(waiting)) })
	defer stop()
	if info, ok := request.RequestInfoFrom(ctx); ok && c == node && ctx.Value(unlimitedKey{}) == nil && limited(info) {
		if err := u.limit.Wait(ctx); err != nil {
			return nil, causeOf(ctx, err)
		}
	}
	response, err := route.transport(c, r.Header.Get("Upgrade") != "").RoundTrip(r.WithContext(ctx))
	if err != nil {
		u.link.Failed(err)
		return nil, causeOf(ctx, err)
	}
	if response.StatusCode < http.StatusInternalServerError {
		u.link.Answered()
	}
	return response, nil
}

func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// limited says whether kubelet's limit for its main client covers a request. Watches,
// leases and events are counted apart from it, or not at all.
func limited(info *request.RequestInfo) bool {
	return info.Verb != "watch" && info.Resource != "leases" && info.Resource != "events"
}
