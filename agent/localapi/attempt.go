package localapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/answer"
)

// Local answers requests from what the node holds.
type Local interface {
	// Serve says whether it has answered. If not, nothing was written.
	Serve(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, caller answer.Caller) bool
}

// Answer has the local API ask l from now on before it passes a request on.
func (s *Server) Answer(l Local) {
	s.local.Store(&l)
	if s.expected != nil {
		s.expected()
	}
}

// Expect has requests wait for Answer, at most until the time from now is over. Without it
// one that came a moment too early would be passed on, and on a node that is cut off wait
// for seconds to be refused. It is called before Run.
func (s *Server) Expect(within time.Duration) {
	s.expecting, s.expected = context.WithTimeout(context.Background(), within)
}

func (s *Server) answered(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, c caller) bool {
	l := s.local.Load()
	if l == nil && s.expecting != nil {
		select {
		case <-s.expecting.Done():
		case <-r.Context().Done():
		}
		l = s.local.Load()
	}
	return l != nil && (*l).Serve(w, r, info, s.callerOf(r, c))
}

// CA is the authority, in PEM, that signed the serving certificate.
func (s *Server) CA() []byte { return s.pki.CA }

// Node is the name of this node, empty while it is not known.
func (s *Server) Node() string {
	if identity := s.upstream.identity(); identity != nil {
		return identity.Node
	}
	return ""
}

// Reach tells how the API server can be reached, and for how long it has been silent.
func (s *Server) Reach() (answer.Reach, time.Duration) {
	state, _ := s.link.State()
	reach := map[State]answer.Reach{Unknown: answer.Undecided, Connected: answer.Linked, CutOff: answer.CutOff}[state]
	return reach, s.link.Silence()
}

// Address of the API server, nil while it is not known.
func (s *Server) Address() *url.URL {
	if identity := s.upstream.identity(); identity != nil {
		return identity.Server
	}
	return nil
}

// LinkUp is told that the node has a way to the API server since now.
func (s *Server) LinkUp(ctx context.Context) { s.upstream.afresh(ctx) }

// Pass passes a request on.
func (s *Server) Pass(w http.ResponseWriter, r *http.Request) { s.pass(w, r) }

// Try passes a request on that could also be answered without the API server. It returns
// an error, and has written nothing, if the patience did not last, or if what came was a
// server's failure.
func (s *Server) Try(w http.ResponseWriter, r *http.Request, patience time.Duration) error {
	a := &attempt{patience: patience}
	s.pass(w, r.WithContext(context.WithValue(r.Context(), attemptKey{}, a)))
	return a.err
}

type attemptKey struct{}

// attempt is a request that must be answered soon or not at all.
type attempt struct {
	patience time.Duration
	err      error
}

func attemptOf(r *http.Request) *attempt {
	a, _ := r.Context().Value(attemptKey{}).(*attempt)
	return a
}

// send waits for the answer to begin. A stream that has begun is not ended.
func (a *attempt) send(r *http.Request, c caller, through *upstream) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(a.patience, func() { cancel(fmt.Errorf("no answer in %s", a.patience)) })
	defer timer.Stop()
	return through.send(r.WithContext(ctx), c)
}

// refuseWorthless turns a failure of the server into an error where there is a better
// answer.
func refuseWorthless(response *http.Response) error {
	if attemptOf(response.Request) != nil && response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("the server answered %s", response.Status)
	}
	return nil
}

func (s *Server) callerOf(r *http.Request, c caller) answer.Caller {
	if c == node {
		return answer.Caller{Node: true, Process: func() bool { return s.fromKubelet(r) }}
	}
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return answer.Caller{Token: strings.TrimSpace(token)}
}
