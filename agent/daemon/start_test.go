package daemon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/timeline"
	"rekindle.edge/api/v1alpha1"
)

func TestDecide(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	pods := map[string]timeline.LastSeen{"a": {Name: "shop/a", Ready: true}}
	mark := &boot.Mark{BootID: "one"}
	alive := &boot.Alive{BootID: "one", Boot: 20 * time.Second, Wall: noon}
	previous := &boot.Previous{BootID: "one", End: v1alpha1.PreviousEndPowerLoss, LastSign: noon}
	opened := timeline.Begin("two", v1alpha1.PreviousEndPowerLoss, noon, defaultTargetSeconds, pods)
	// Boot "one" began 20 s before noon, a minute after the sign of life before it.
	minute := time.Minute
	old := timeline.Begin("one", v1alpha1.PreviousEndClean, noon.Add(-80*time.Second), 10, pods)
	interrupted := old.CloseRestarted(20*time.Second, &minute)

	unknown := old.CloseRestarted(20*time.Second, nil)

	cases := map[string]struct {
		now      time.Duration
		contents snapshot.Contents
		madeUp   bool
		want     start
	}{
		"a new store measures nothing, it knows no pods from before": {},
		"a restart is measured": {
			contents: snapshot.Contents{Mark: mark, Pods: pods, Listed: true},
			want:     start{previous: previous, open: &opened},
		},
		"a restart before any pod list was seen is not measured": {
			contents: snapshot.Contents{Mark: mark},
			want:     start{previous: previous},
		},
		"a restart that the agent missed is not measured": {
			now:      10 * time.Minute,
			contents: snapshot.Contents{Mark: mark, Pods: pods, Listed: true},
			want:     start{previous: previous},
		},
		"an agent that was restarted goes on with the record": {
			contents: snapshot.Contents{Mark: &boot.Mark{BootID: "two", Stop: boot.StopAgent}, Pods: pods, Listed: true, Open: &opened},
			want:     start{open: &opened},
		},
		"an agent that was restarted after the record was closed has none": {
			contents: snapshot.Contents{Mark: &boot.Mark{BootID: "two"}, Pods: pods, Listed: true},
		},
		"an agent that was killed while it began goes on": {
			contents: snapshot.Contents{Mark: mark, Pods: pods, Listed: true, Open: &opened},
			want:     start{previous: previous, open: &opened},
		},
		"a recovery that a restart cut short is closed": {
			contents: snapshot.Contents{Mark: mark, Pods: pods, Listed: true, Open: &old},
			want:     start{previous: previous, interrupted: &interrupted, open: &opened},
		},
		"and how long the node was off is not known of a clock that was in the past": {
			contents: snapshot.Contents{Mark: mark, Pods: pods, Listed: true, Open: &old},
			madeUp:   true,
			want:     start{previous: previous, interrupted: &unknown, open: &opened},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			alive := *alive
			alive.MadeUp = tc.madeUp
			got := decide("two", tc.now, tc.contents, &alive)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(start{})); diff != "" {
				t.Errorf("start (-want +got):\n%s", diff)
			}
		})
	}
}
