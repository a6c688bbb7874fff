package main

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/snapshot"
)

// board is a machine whose clock begins in the past.
type board struct {
	wall         time.Time
	boot         time.Duration
	synchronised bool
	refuses      error
	sets         int
}

func (b *board) Wall() time.Time     { return b.wall }
func (b *board) Boot() time.Duration { return b.boot }
func (b *board) Synchronised() bool  { return b.synchronised }

func (b *board) SetWall(t time.Time) error {
	b.sets++
	if b.refuses == nil {
		b.wall = t
	}
	return b.refuses
}

// pass lets time go by on both clocks.
func (b *board) pass(d time.Duration) { b.wall, b.boot = b.wall.Add(d), b.boot+d }

type written struct{ pods, overlay string }

func (w written) List(schema.GroupVersionResource) ([]snapshot.Object, uint64) {
	return []snapshot.Object{{Name: "web", Raw: []byte(w.pods)}}, 1
}

func (w written) Overlays() map[snapshot.OverlayKey][]byte {
	return map[snapshot.OverlayKey][]byte{{Resource: snapshot.Pods, Name: "web"}: []byte(w.overlay)}
}

func TestAClockInThePastIsSetForward(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	status := written{
		pods:    `{"status":{"containerStatuses":[{"state":{"running":{"startedAt":"2026-11-30T11:00:00Z"}},"lastState":{"terminated":{"finishedAt":"2026-11-30T12:00:20Z"}}}]}}`,
		overlay: `{"status":{"containerStatuses":[{"state":{"running":{"startedAt":"2026-11-30T12:00:40Z"}}}],"message":"\"startedAt\":\"9999-01-01T00:00:00Z\""}}`,
	}
	cases := map[string]struct {
		board *board
		want  time.Time
		sets  int
	}{
		"a board without a battery":            {board: &board{wall: time.Unix(5, 0)}, want: noon.Add(41 * time.Second), sets: 1},
		"a clock that is right":                {board: &board{wall: noon.Add(time.Hour)}, want: noon.Add(time.Hour)},
		"a clock that is synchronised":         {board: &board{wall: time.Unix(5, 0), synchronised: true}, want: time.Unix(5, 0)},
		"a kernel that does not let it be set": {board: &board{wall: time.Unix(5, 0), refuses: errors.New("not permitted")}, want: time.Unix(5, 0), sets: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store, err := snapshot.Open(dir, testr.New(t))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if err := store.PutAlive(boot.Alive{BootID: "one", Wall: noon}); err != nil {
				t.Fatal(err)
			}
			clock := &wallClock{settable: tc.board, file: filepath.Join(dir, "run", clockFile)}
			clock.catchUp(testr.New(t), dir, "two", status)
			if !tc.board.wall.Equal(tc.want) || tc.board.sets != tc.sets {
				t.Errorf("clock is %v after %d sets, want %v after %d", tc.board.wall, tc.board.sets, tc.want, tc.sets)
			}
		})
	}
}

func TestAClockThatWasSetIsNoTime(t *testing.T) {
	dir := t.TempDir()
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	store, err := snapshot.Open(dir, testr.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.PutAlive(boot.Alive{BootID: "one", Wall: noon}); err != nil {
		t.Fatal(err)
	}
	machine := &board{wall: time.Unix(5, 0), boot: 5 * time.Second}
	file := filepath.Join(dir, "run", clockFile)
	clock := &wallClock{settable: machine, file: file}
	if clock.madeUp() {
		t.Error("made up before it was set")
	}
	clock.catchUp(testr.New(t), dir, "two", written{})
	machine.pass(time.Minute)
	if !clock.madeUp() {
		t.Error("true although the agent has set it")
	}

	t.Run("an agent that is restarted in the boot knows, and sets nothing", func(t *testing.T) {
		again := &wallClock{settable: machine, file: file}
		again.catchUp(testr.New(t), dir, "two", written{})
		if !again.madeUp() || machine.sets != 1 {
			t.Errorf("made up %v after %d sets", again.madeUp(), machine.sets)
		}
	})
	t.Run("a time server has the last word", func(t *testing.T) {
		machine.wall = noon.Add(3 * time.Hour)
		if clock.madeUp() {
			t.Error("made up although somebody has set it right")
		}
	})
	t.Run("the next boot begins anew", func(t *testing.T) {
		next := &wallClock{settable: &board{wall: time.Unix(5, 0)}, file: file}
		next.catchUp(testr.New(t), dir, "three", written{})
		if next.settable.(*board).sets != 1 {
			t.Error("not set in the next boot")
		}
	})
}
