package answer

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestRequestsAreCounted(t *testing.T) {
	cases := map[string]struct {
		reach        Reach
		answer, path string
		method       string
		want         [3]string // resource, verb, source
	}{
		"a list that the node holds":        {reach: Linked, path: allPods, want: [3]string{"pods", "list", "local"}},
		"a get that the API server answers": {reach: Linked, answer: "x", path: "/api/v1/namespaces/default/pods/web-1", want: [3]string{"pods", "get", "upstream"}},
		"one that it does not answer":       {reach: Linked, path: "/api/v1/namespaces/default/pods/web-1", want: [3]string{"pods", "get", "local"}},
		"what nobody has":                   {reach: CutOff, path: "/apis/example.com/v1/gadgets", want: [3]string{"other", "list", "none"}},
		"what is passed on":                 {reach: Linked, path: "/apis/example.com/v1/gadgets", want: [3]string{"other", "list", "upstream"}},
		"what is passed on and refused":     {reach: CutOff, path: "/api/v1/namespaces/default/pods/web-1/log", want: [3]string{"pods/log", "get", "none"}},
		"a name without end":                {reach: Linked, path: "/apis/example.com/v1/gadgets-1234567", want: [3]string{"other", "list", "upstream"}},
		"an event that is taken":            {reach: CutOff, method: http.MethodPost, path: "/api/v1/namespaces/default/events", want: [3]string{"events", "create", "local"}},
		"a pod that is deleted":             {reach: Linked, method: http.MethodDelete, path: "/api/v1/namespaces/default/pods/web-1", want: [3]string{"pods", "delete", "upstream"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tc.reach, held...).fill()
			r.link.answer = tc.answer
			registry := prometheus.NewRegistry()
			var err error
			if r.Metrics, err = NewMetrics(registry); err != nil {
				t.Fatal(err)
			}
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			r.send(t, method, tc.path, "application/json", []byte("{}"))
			families, err := registry.Gather()
			if err != nil || len(families) != 1 || len(families[0].Metric) != 1 || families[0].Metric[0].Counter.GetValue() != 1 {
				t.Fatalf("%v, %v, want one count", families, err)
			}
			got := map[string]string{}
			for _, label := range families[0].Metric[0].Label {
				got[label.GetName()] = label.GetValue()
			}
			want := map[string]string{"resource": tc.want[0], "verb": tc.want[1], "source": tc.want[2]}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// nobody refuses everybody but the node.
type nobody struct{ Access }

func (nobody) Check(_ context.Context, caller Caller, _ *request.RequestInfo) error {
	if caller.Node {
		return nil
	}
	return apierrors.NewUnauthorized("no")
}

func TestMetricsAreAnsweredToWhoMay(t *testing.T) {
	r := newRig(t, Linked, held...).fill()
	r.Access = nobody{}
	_, before, _ := r.get(t, "/metrics")
	r.Exposition = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("own")) })
	_, own, _ := r.get(t, "/metrics")
	code, _, _ := r.get(t, "/metrics", "Authorization: Bearer x")
	_, deeper, _ := r.get(t, "/metrics/cadvisor")
	if diff := cmp.Diff([]any{"upstream", "own", http.StatusUnauthorized, "upstream"}, []any{before, own, code, deeper}); diff != "" {
		t.Error(diff)
	}
}
