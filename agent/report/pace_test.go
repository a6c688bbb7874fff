package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// wan is an API server behind a link that can be cut. It watches its own answers, as the
// agent's link does.
type wan struct {
	mu      sync.Mutex
	object  v1alpha1.NodeRecovery
	cut     bool
	since   time.Time
	writes  int
	watches []*io.PipeWriter
	changed chan struct{}
}

func (w *wan) RoundTrip(request *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		w.set(time.Time{})
		return nil, errors.New("no route to host")
	}
	if w.since.IsZero() {
		w.set(time.Now())
	}
	answer := func(code int, v any) (*http.Response, error) {
		data, err := json.Marshal(v)
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data))}, err
	}
	query := request.URL.Query()
	switch {
	case request.Method == http.MethodPut:
		w.writes++
		if err := json.NewDecoder(request.Body).Decode(&w.object); err != nil {
			return nil, err
		}
		return answer(http.StatusOK, w.object)
	case query.Has("sendInitialEvents"):
		return answer(http.StatusUnprocessableEntity, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
	case query.Has("watch"):
		reader, writer := io.Pipe()
		w.watches = append(w.watches, writer)
		context.AfterFunc(request.Context(), func() { _ = writer.Close() })
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: reader}, nil
	}
	if !query.Has("fieldSelector") {
		return answer(http.StatusOK, w.object)
	}
	list := v1alpha1.NodeRecoveryList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []v1alpha1.NodeRecovery{w.object}}
	list.APIVersion, list.Kind = v1alpha1.GroupVersion.String(), "NodeRecoveryList"
	return answer(http.StatusOK, list)
}

func (w *wan) set(since time.Time) {
	w.since = since
	w.poke()
}

// poke wakes the reporter.
func (w *wan) poke() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// link cuts the link or restores it.
func (w *wan) link(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = !up
	for _, watch := range w.watches {
		_ = watch.CloseWithError(io.ErrUnexpectedEOF)
	}
	w.watches = nil
}

func (w *wan) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// TestJitter: when the API server begins to answer, first at the start and again after an
// outage, nothing is written before a random time, whatever else happens meanwhile.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		metav1.AddToGroupVersion(scheme, metav1.Unversioned)
		server := &wan{changed: make(chan struct{}, 1), object: v1alpha1.NodeRecovery{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeRecovery"},
			ObjectMeta: metav1.ObjectMeta{Name: "edge-1", ResourceVersion: "1"},
		}}
		client, err := rest.RESTClientForConfigAndClient(&rest.Config{
			Host: "http://api", APIPath: "/apis", QPS: -1,
			ContentConfig: rest.ContentConfig{
				GroupVersion: &v1alpha1.GroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
			},
		}, &http.Client{Transport: server})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		facts := Facts{AgentVersion: "v1"}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		adopted := 0
		reporter := Reporter{
			Node: "edge-1", Wall: time.Now, Jitter: 100 * time.Hour, Changed: server.changed,
			Client: client,
			Since: func() time.Time {
				server.mu.Lock()
				defer server.mu.Unlock()
				return server.since
			},
			Facts: func() Facts {
				mu.Lock()
				defer mu.Unlock()
				return facts
			},
			Adopt: func(_ context.Context, spec *snapshot.Spec) error {
				mu.Lock()
				defer mu.Unlock()
				facts.Spec, adopted = spec, adopted+1
				server.poke()
				return nil
			},
		}
		running.Go(func() { reporter.Run(ctx) })
		// busy lets time pass in which there is something to report all the while.
		busy := func(d time.Duration) {
			for range 10 {
				time.Sleep(d / 10)
				mu.Lock()
				facts.Findings = append(facts.Findings, v1alpha1.Finding{Reason: "R", Severity: v1alpha1.SeveritySlows})
				mu.Unlock()
				server.poke()
				synctest.Wait()
			}
		}

		busy(time.Second)
		if n := server.written(); n != 0 || adopted != 1 {
			t.Fatalf("first contact: %d writes and %d specs after a second, want none and 1", n, adopted)
		}
		busy(100 * time.Hour)
		if n := server.written(); n == 0 {
			t.Fatal("first contact: nothing was written within the jitter")
		}
		busy(time.Second)
		steady := server.written()
		busy(time.Second)
		if n := server.written(); n < steady+10 {
			t.Fatalf("connected: %d writes, want one a change", n-steady)
		}

		server.link(false)
		busy(10 * time.Minute)
		before := server.written()
		server.link(true)
		// The watch looks for the server every two seconds.
		busy(4 * time.Second)
		if n := server.written() - before; n != 0 {
			t.Fatalf("after an outage: %d writes at once", n)
		}
		busy(100 * time.Hour)
		if server.written() == before {
			t.Fatal("after an outage: nothing was written within the jitter")
		}
	})
}

func TestPace(t *testing.T) {
	now := noon.Time
	var p pace
	if got := p.wait(now, now, 0); got > 0 {
		t.Errorf("without jitter a write waits %v", got)
	}
	p.hold(now, time.Minute)
	if got := p.wait(now.Add(time.Second), now, time.Hour); got != 59*time.Second {
		t.Errorf("after a failure a write waits %v, want 59s", got)
	}
	returned := now.Add(2 * time.Second)
	if p.wait(returned, returned, time.Second); p.notBefore.After(returned.Add(time.Second)) {
		t.Errorf("a link that is back is written to at %v, not within the jitter", p.notBefore)
	}
	// It comes and goes twenty times a second.
	due := p.notBefore
	for at := returned; at.Before(due); at = at.Add(50 * time.Millisecond) {
		p.wait(at, at, time.Second)
	}
	if !p.notBefore.Equal(due) {
		t.Errorf("a link that comes and goes has put the write off by %v", p.notBefore.Sub(due))
	}
}
