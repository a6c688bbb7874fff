package mirror

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rekindle.edge/agent/snapshot"
)

func TestWhatAServerNeedNotHaveIsNotMissed(t *testing.T) {
	for name, optional := range map[string]bool{"a collection that it must have is": false, "one that it need not have is not": true} {
		t.Run(name, func(t *testing.T) {
			store, err := snapshot.Open(t.TempDir(), logr.Discard())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = store.Close() }()
			now := noon
			m := New(store.Objects(), func() time.Time { return now }, func() {})
			state := &scopeState{scope: snapshot.Scope{Resource: podCertificates}, optional: optional}
			m.track(state)
			state.left(m, apierrors.NewNotFound(podCertificates.GroupResource(), ""))
			_, waited := m.standing().inStep[podCertificates]
			if waited == optional {
				t.Errorf("waited for: %v", waited)
			}
			now = now.Add(refusedPatience)
			if refused := len(m.standing().refused) > 0; refused == optional {
				t.Errorf("told as refused: %v", refused)
			}
		})
	}
}
