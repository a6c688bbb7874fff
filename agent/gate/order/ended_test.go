package order

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestEvent(t *testing.T) {
	event := func(kind, uid, reason, message string) *corev1.Event {
		e := &corev1.Event{Reason: reason, Message: message}
		e.InvolvedObject.Kind, e.InvolvedObject.UID = kind, "uid-b"
		if uid != "" {
			e.InvolvedObject.UID = "uid-other"
		}
		return e
	}
	cases := map[string]struct {
		event *corev1.Event
		goes  bool
	}{
		"an eviction":                       {event("Pod", "", "Evicted", "low on memory"), true},
		"a preemption":                      {event("Pod", "", "Preempting", ""), true},
		"the node's shutdown":               {event("Node", "other", "Shutdown", "Shutdown manager detected shutdown event"), true},
		"a shutdown that was called off":    {event("Node", "other", "Shutdown", "Shutdown manager detected shutdown cancellation"), false},
		"an eviction of another pod":        {event("Pod", "other", "Evicted", ""), false},
		"another event":                     {event("Pod", "", "FailedMount", ""), false},
		"an event of the reason of another": {event("Job", "", "DeadlineExceeded", ""), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			story(t, nil, func(n *node) {
				n.Begin(oneStage(60), nil, nil)
				n.list("one/a", "two/b")
				b := n.asks("two/b")
				n.Event(tc.event)
				if goes := len(n.planner.calls) == 0; goes != tc.goes {
					t.Errorf("lets go: %v", goes)
				}
				n.Stop()
				_ = b()
			})
		})
	}
}

// statuses is a runtime with conditions.
type statuses []*runtimeapi.RuntimeCondition

func (s statuses) Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: s}}, nil
}

func TestNetworkReady(t *testing.T) {
	cases := map[string]struct {
		runtime statuses
		want    bool
	}{
		"ready":     {statuses{{Type: runtimeapi.NetworkReady, Status: true}}, true},
		"not ready": {statuses{{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady}}, false},
		"not said":  {statuses{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := NetworkReady(tc.runtime)(t.Context()); got != tc.want || err != nil {
				t.Errorf("got %v, error %v", got, err)
			}
		})
	}
}
