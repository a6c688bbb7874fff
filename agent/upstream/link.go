package upstream

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Link knows whether the API server answers, from the requests that are made anyway: any
// answer counts, also a refusal.
type Link struct {
	// Changed is called on every change, and on the first outcome. It must not block.
	Changed func(online bool)

	mu     sync.Mutex
	known  bool
	online bool
	since  time.Time
}

// Since is when the API server began to answer; zero: it does not, or was not asked yet.
func (l *Link) Since() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

func (l *Link) set(log logr.Logger, online bool, reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known && l.online == online {
		return
	}
	l.known, l.online, l.since = true, online, time.Time{}
	if online {
		l.since = time.Now()
		log.Info("API server answers")
	} else {
		log.Info("API server does not answer", "reason", reason.Error())
	}
	l.Changed(online)
}

// transport watches the outcome of requests.
func (l *Link) transport(log logr.Logger) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			switch {
			case err == nil:
				l.set(log, true, nil)
			case !errors.Is(err, context.Canceled):
				l.set(log, false, err)
			}
			return response, err
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
