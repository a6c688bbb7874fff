package localapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/answer"
)

// answering is a Local that has an answer to everything.
type answering struct{}

func (answering) Serve(w http.ResponseWriter, _ *http.Request, _ *request.RequestInfo, _ answer.Caller) bool {
	_, _ = fmt.Fprint(w, "from the node")
	return true
}

func TestARequestThatComesTooEarly(t *testing.T) {
	tests := map[string]struct {
		within   time.Duration
		answer   bool
		wantCode int
	}{
		"waits for the node to have an answer":      {time.Minute, true, 200},
		"is passed on when the time for it is over": {time.Millisecond, false, 503},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			upstream, ca := apiServer(t, echo)
			k := newKubelet(t, upstream.URL, ca)
			upstream.Close()
			l := startLocal(t, k.source(), func(s *Server) { s.Expect(tc.within) })
			if tc.answer {
				time.AfterFunc(50*time.Millisecond, func() { l.Answer(answering{}) })
			}
			response, body := get(t, l.client(&k.certificate), l.url+pods)
			if response.StatusCode != tc.wantCode {
				t.Errorf("%d %s, want %d", response.StatusCode, body, tc.wantCode)
			}
			if tc.answer && body != "from the node" {
				t.Errorf("answered %q", body)
			}
		})
	}
}

func TestTheAgentFindsItselfWellBeforeThereAreAnswers(t *testing.T) {
	k := newKubelet(t, "https://192.0.2.1:6443", nil)
	l := startLocal(t, k.source(), func(s *Server) { s.Expect(time.Minute) })
	if err := l.Check(t.Context(), l.url[len("https://"):]); err != nil {
		t.Errorf("the agent asks itself before its store is open: %v", err)
	}
}
