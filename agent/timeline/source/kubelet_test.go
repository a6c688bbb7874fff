package source

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/agent/timeline"
)

// machine has an init, and a kubelet once it is told so.
type machine struct {
	kubelet   atomic.Int32
	noSystemd bool
	// program is what systemd says of the start of user space.
	program time.Duration
}

func (m *machine) InitStarted(context.Context) (time.Duration, error) {
	if m.noSystemd {
		return 0, errors.New("connection refused")
	}
	return m.program, nil
}

func (m *machine) ProcessStart(pid int) (time.Duration, error) {
	switch pid {
	case 1:
		return 70 * time.Millisecond, nil
	case 99:
		return 2 * time.Second, nil
	}
	return 0, errors.New("no such process")
}

func (m *machine) Command(pid int) (string, error) {
	switch pid {
	case 98:
		return "(kubelet)", nil
	case 99:
		return "kubelet", nil
	}
	return "", errors.New("no such process")
}

func (m *machine) FindProcess(command string) (int, error) {
	if command == "kubelet" && m.noSystemd {
		return int(m.kubelet.Load()), nil
	}
	return 0, nil
}

func (m *machine) MainPID(context.Context, string) (int, error) {
	if m.noSystemd {
		return 0, errors.New("connection refused")
	}
	return int(m.kubelet.Load()), nil
}

func TestKubelet(t *testing.T) {
	cases := map[string]struct {
		noSystemd bool
		// late: kubelet is there and serves before the agent looks.
		late bool
		want []timeline.Event
	}{
		"kubelet that starts while the agent looks": {
			want: []timeline.Event{timeline.InitStarted{At: 70 * time.Millisecond}, timeline.KubeletStarted{At: 9 * time.Second}, timeline.KubeletHealthy{At: 9 * time.Second}},
		},
		"without systemd it is found in the process table": {
			noSystemd: true,
			want:      []timeline.Event{timeline.InitStarted{At: 70 * time.Millisecond}, timeline.KubeletStarted{At: 9 * time.Second}, timeline.KubeletHealthy{At: 9 * time.Second}},
		},
		"health that was there before the agent is no edge": {
			late: true,
			want: []timeline.Event{timeline.InitStarted{At: 70 * time.Millisecond}, timeline.KubeletStarted{At: 2 * time.Second}, timeline.KubeletHealthy{At: 9 * time.Second, Late: true}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &machine{noSystemd: tc.noSystemd}
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				// Kubelet serves errors before it serves health.
				if asked.Add(1) < 3 && !tc.late {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}))
			defer server.Close()
			if tc.late {
				m.kubelet.Store(99)
			} else {
				// At first there is none, then one that has ended when it is looked at, then
				// one that is not kubelet yet.
				time.AfterFunc(processPoll/2, func() { m.kubelet.Store(55) })
				time.AfterFunc(2*processPoll, func() { m.kubelet.Store(98) })
				time.AfterFunc(4*processPoll, func() { m.kubelet.Store(99) })
			}
			var got []timeline.Event
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			Kubelet{
				Clock: &twoClocks{boot: 9 * time.Second, wall: noon}, Processes: m, Units: m, Unit: "kubelet.service", Healthz: server.URL,
			}.Run(ctx, func(event timeline.Event) { got = append(got, event) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInitStart(t *testing.T) {
	cases := map[string]struct {
		machine *machine
		want    time.Duration
	}{
		"systemd knows when its program began":         {machine: &machine{program: 900 * time.Millisecond}, want: 900 * time.Millisecond},
		"without systemd the process counts":           {machine: &machine{noSystemd: true}, want: 70 * time.Millisecond},
		"a stamp from before the process is not of it": {machine: &machine{program: time.Millisecond}, want: 70 * time.Millisecond},
		"a stamp from the future is of another clock":  {machine: &machine{program: time.Hour}, want: 70 * time.Millisecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kubelet := Kubelet{Clock: &twoClocks{boot: 9 * time.Second}, Processes: tc.machine, Units: tc.machine}
			if got, err := kubelet.initStart(t.Context()); got != tc.want || err != nil {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestProgramStart(t *testing.T) {
	at := func(d time.Duration) *time.Duration { return &d }
	const process = 2 * time.Second
	cases := map[string]struct {
		before *time.Duration
		now    time.Duration
		want   time.Duration
	}{
		"seen to begin between two looks":               {before: at(2010 * time.Millisecond), now: 2020 * time.Millisecond, want: 2020 * time.Millisecond},
		"there at the first look":                       {now: 9 * time.Second, want: process},
		"a look that came late, before the process was": {before: at(time.Second), now: 9 * time.Second, want: process},
		"a look that came late, after it was":           {before: at(2500 * time.Millisecond), now: 9 * time.Second, want: 2500 * time.Millisecond},
		"ticks that are ahead of the clock":             {before: at(1990 * time.Millisecond), now: 1995 * time.Millisecond, want: process},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := programStart(process, tc.before, tc.now); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRunsProgram(t *testing.T) {
	for command, want := range map[string]bool{"kubelet": true, "sh": true, "(kubelet)": false, "systemd": false, "systemd-executo": false, "sd-executor": false, "": false} {
		if got := runsProgram(command); got != want {
			t.Errorf("%q: got %v, want %v", command, got, want)
		}
	}
}
