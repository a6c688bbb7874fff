package answer

import (
	"context"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// heard is told what is asked about callers.
type heard struct {
	Access
	questions chan string
}

func (h heard) Check(_ context.Context, _ Caller, info *request.RequestInfo) error {
	h.questions <- info.Verb + " " + info.Resource + " " + info.Name
	return nil
}

func TestWhatTheAPIServerAnswersACallerIsAskedAboutForLater(t *testing.T) {
	cases := map[string]struct {
		header []string
		want   string
	}{
		"a caller with a token": {header: []string{"Authorization: Bearer x"}, want: "get configmaps settings"},
		"the node itself":       {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Linked, held...).fill()
			r.link.answer = "upstream's own"
			access := heard{questions: make(chan string, 1)}
			r.Access = access
			if _, body, _ := r.get(t, "/api/v1/namespaces/default/configmaps/settings", tc.header...); body != r.link.answer {
				t.Fatalf("answered with %s", body)
			}
			got := ""
			select {
			case got = <-access.questions:
			case <-time.After(patience(len(tc.want))):
			}
			if got != tc.want {
				t.Errorf("asked about %q, want %q", got, tc.want)
			}
		})
	}
}
