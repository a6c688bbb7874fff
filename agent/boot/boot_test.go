package boot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/api/v1alpha1"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestBefore(t *testing.T) {
	alive := &Alive{BootID: "one", Boot: time.Hour, Wall: noon}
	cases := map[string]struct {
		mark  *Mark
		alive *Alive
		want  *Previous
	}{
		"a new store knows no boot before": {},
		"the same boot has none before":    {mark: &Mark{BootID: "two"}, alive: alive},
		"a boot that just stops lost power": {
			mark: &Mark{BootID: "one"}, alive: alive,
			want: &Previous{BootID: "one", End: v1alpha1.PreviousEndPowerLoss, LastSign: noon},
		},
		"an agent stopped with the system is a clean end": {
			mark: &Mark{BootID: "one", Stop: StopSystem, StopWall: noon.Add(30 * time.Second)}, alive: alive,
			want: &Previous{BootID: "one", End: v1alpha1.PreviousEndClean, LastSign: noon.Add(30 * time.Second)},
		},
		"an agent stopped alone did not see the end": {
			mark: &Mark{BootID: "one", Stop: StopAgent, StopWall: noon.Add(-time.Second)}, alive: alive,
			want: &Previous{BootID: "one", End: v1alpha1.PreviousEndUnknown, LastSign: noon},
		},
		"a sign of life of another boot is none": {
			mark: &Mark{BootID: "one"}, alive: &Alive{BootID: "zero", Wall: noon},
			want: &Previous{BootID: "one", End: v1alpha1.PreviousEndPowerLoss},
		},
		"no sign of life at all": {
			mark: &Mark{BootID: "one"},
			want: &Previous{BootID: "one", End: v1alpha1.PreviousEndPowerLoss},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Before("two", tc.mark, tc.alive)); diff != "" {
				t.Errorf("previous boot (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDown(t *testing.T) {
	minute := time.Minute
	cases := map[string]struct {
		lastSign, kernelStart time.Time
		want                  *time.Duration
	}{
		"a plain outage":                        {lastSign: noon, kernelStart: noon.Add(minute), want: &minute},
		"a clock without a battery":             {lastSign: noon, kernelStart: time.Unix(10, 0)},
		"a clock that lies before the outage":   {lastSign: noon, kernelStart: noon.Add(-time.Hour)},
		"a clock that is years ahead":           {lastSign: noon, kernelStart: noon.AddDate(30, 0, 0)},
		"a sign of life of a clock never set":   {lastSign: time.Unix(100, 0), kernelStart: noon},
		"no sign of life before the restart":    {kernelStart: noon},
		"a sign of life when the kernel starts": {lastSign: noon, kernelStart: noon, want: new(time.Duration)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Down(tc.lastSign, tc.kernelStart)); diff != "" {
				t.Errorf("down (-want +got):\n%s", diff)
			}
		})
	}
}
