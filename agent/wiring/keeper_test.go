package wiring

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"
)

// fakeKubelet starts with the arguments that its unit and the hook give it.
type fakeKubelet struct {
	hook Hook
	// deaf is a unit that does not take the agent's arguments.
	deaf bool
	// slow is one that goes on while it is told to restart.
	slow bool
	// own are arguments of its unit.
	own      []string
	pid      int
	args     []string
	restarts int
	err      error
}

func (f *fakeKubelet) start() {
	f.pid++
	f.args = append([]string{"kubelet"}, f.own...)
	if f.hook.IsSet() && !f.deaf {
		f.args = append(f.args, f.hook.Args()...)
	}
}

func (f *fakeKubelet) Process(context.Context) (int, []string, error) { return f.pid, f.args, f.err }

func (f *fakeKubelet) Restart(context.Context) error {
	f.restarts++
	if !f.slow {
		f.start()
	}
	return nil
}

func TestKeeper(t *testing.T) {
	type step func(t *testing.T, k *Keeper, f *fakeKubelet)
	start := func(_ *testing.T, _ *Keeper, f *fakeKubelet) { f.start() }
	unhookAndRestart := func(t *testing.T, k *Keeper, f *fakeKubelet) {
		t.Helper()
		if err := os.Remove(filepath.Join(k.Hook.Dir, envFile)); err != nil {
			t.Fatal(err)
		}
		f.start()
	}
	unhookedBefore := func(t *testing.T, k *Keeper, _ *fakeKubelet) {
		t.Helper()
		if err := os.MkdirAll(k.Hook.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(k.Hook.Dir, unhookedFile), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*testing.T, *Keeper, *fakeKubelet) {}
	otherRuntime := func(_ *testing.T, _ *Keeper, f *fakeKubelet) {
		f.own = []string{"--container-runtime-endpoint=unix:///run/crio/crio.sock"}
	}
	observing, unknown := false, false
	undecided := func(is bool) step { return func(*testing.T, *Keeper, *fakeKubelet) { unknown = is } }
	observe := func(is bool) step { return func(*testing.T, *Keeper, *fakeKubelet) { observing = is } }
	later := func(d time.Duration) step {
		return func(_ *testing.T, k *Keeper, _ *fakeKubelet) { k.Clock.(*testclock.FakeClock).Step(d) }
	}
	tests := map[string]struct {
		before, steps []step
		want          []string // what is told, in order
		wantRestarts  int
		wantSet       bool
	}{
		"kubelet starts after the agent and is wired": {
			steps:   []step{start},
			want:    []string{"wired"},
			wantSet: true,
		},
		"kubelet ran before the agent did and is restarted once": {
			before:       []step{start},
			want:         []string{"and is restarted", "wired"},
			wantRestarts: 1,
			wantSet:      true,
		},
		"kubelet does not run and is left alone": {
			wantSet: true,
		},
		"a unit that no longer takes the arguments is said, and kubelet not restarted again and again": {
			before:       []step{func(_ *testing.T, _ *Keeper, f *fakeKubelet) { f.deaf = true }, start},
			want:         []string{"and is restarted", "although it was restarted"},
			wantRestarts: 1,
			wantSet:      true,
		},
		"a wiring that was taken away is set again": {
			steps:        []step{start, later(time.Minute), unhookAndRestart},
			want:         []string{"wired", "and is restarted", "wired"},
			wantRestarts: 1,
			wantSet:      true,
		},
		"kubelet that was restarted without the agent is not taken back at once": {
			before: []step{unhookedBefore, start},
			want:   []string{"once the agent has served for 1m0s"},
		},
		"it is taken back when the agent has served for a while": {
			before:       []step{unhookedBefore, start},
			steps:        []step{later(time.Minute)},
			want:         []string{"once the agent has served for 1m0s", "and is restarted", "wired"},
			wantRestarts: 1,
			wantSet:      true,
		},
		"a kubelet that uses another container runtime is given back to itself": {
			before: []step{otherRuntime},
			steps:  []step{start},
			want:   []string{"/run/crio/crio.sock"},
			// It was wired before its arguments could be seen.
			wantRestarts: 1,
		},
		"a kubelet that uses another container runtime and runs already is left alone": {
			before: []step{otherRuntime, start},
			want:   []string{"/run/crio/crio.sock"},
		},
		"a kubelet that uses the agent's container runtime again is taken back": {
			before: []step{otherRuntime, start},
			steps: []step{nothing, func(_ *testing.T, _ *Keeper, f *fakeKubelet) {
				f.own = nil
				f.start()
			}},
			want:         []string{"/run/crio/crio.sock", "and is restarted", "wired"},
			wantRestarts: 1,
			wantSet:      true,
		},
		"a policy that only observes leaves kubelet alone from the start": {
			before: []step{observe(true)},
			steps:  []step{start},
			want:   []string{"Observe"},
		},
		"one that begins to observe gives kubelet back to itself": {
			before:       []step{start},
			steps:        []step{nothing, observe(true)},
			want:         []string{"and is restarted", "wired", "Observe"},
			wantRestarts: 2,
		},
		"one that ceases to has kubelet taken again": {
			before:       []step{observe(true), start},
			steps:        []step{nothing, observe(false)},
			want:         []string{"Observe", "and is restarted", "wired"},
			wantRestarts: 1,
			wantSet:      true,
		},
		"kubelet that is left is not restarted again and again while it ends": {
			before:       []step{start},
			steps:        []step{nothing, func(_ *testing.T, _ *Keeper, f *fakeKubelet) { f.slow = true }, observe(true)},
			want:         []string{"and is restarted", "wired", "Observe"},
			wantRestarts: 2,
		},
		"a kubelet that runs is left alone until the policy is known, and longer if that observes": {
			before: []step{undecided(true), start},
			steps:  []step{nothing, observe(true), undecided(false)},
			want:   []string{"Observe"},
		},
		"and is taken once the policy is known": {
			before:       []step{undecided(true), start},
			steps:        []step{nothing, undecided(false)},
			want:         []string{"and is restarted", "wired"},
			wantRestarts: 1,
			wantSet:      true,
		},
		"a kubelet that is still to start waits for no policy": {
			before:  []step{undecided(true)},
			steps:   []step{start},
			want:    []string{"wired"},
			wantSet: true,
		},
		"a systemd that does not answer is said": {
			steps:   []step{func(_ *testing.T, _ *Keeper, f *fakeKubelet) { f.err = errors.New("no bus") }},
			want:    []string{"no bus"},
			wantSet: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			observing, unknown = false, false
			hook := newHook(t)
			kubelet := &fakeKubelet{hook: hook}
			var told []string
			k := &Keeper{Hook: hook, Kubelet: kubelet, Runtime: runtimeDefault, Observe: func() bool { return observing }, Undecided: func() bool { return unknown }, Clock: testclock.NewFakeClock(time.Unix(0, 0)), Tell: func(err error) {
				if err == nil {
					told = append(told, "wired")
				} else {
					told = append(told, err.Error())
				}
			}}
			for _, step := range tc.before {
				step(t, k, kubelet)
			}
			k.Begin(t.Context())
			for _, step := range append(slices.Clone(tc.steps), nothing) {
				step(t, k, kubelet)
				for range 5 {
					if state, known := k.look(t.Context()); known {
						k.tell(t.Context(), state)
					}
				}
			}
			matches := func(want, got string) bool { return strings.Contains(got, want) }
			if !slices.EqualFunc(tc.want, told, matches) {
				t.Error(cmp.Diff(tc.want, told))
			}
			if kubelet.restarts != tc.wantRestarts {
				t.Errorf("%d restarts, want %d", kubelet.restarts, tc.wantRestarts)
			}
			if hook.IsSet() != tc.wantSet {
				t.Errorf("set: %v", hook.IsSet())
			}
			if hook.Left() != observing {
				t.Errorf("left by the policy: %v", hook.Left())
			}
		})
	}
}
