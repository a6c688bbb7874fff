package boot

import (
	"testing"
	"time"
)

func TestCatchUp(t *testing.T) {
	epoch := time.Unix(0, 0)
	cases := map[string]struct {
		now          time.Time
		last         *Alive
		newest       time.Time
		synchronised bool
		want         time.Time // zero: the clock stays
	}{
		"a clock that begins in 1970": {
			now: epoch, last: &Alive{BootID: "one", Wall: noon}, want: noon.Add(time.Second),
		},
		"a container that was created after the last sign of life": {
			now: epoch, last: &Alive{BootID: "one", Wall: noon}, newest: noon.Add(50 * time.Second), want: noon.Add(51 * time.Second),
		},
		"a clock between the last sign of life and the newest container": {
			now: noon.Add(30 * time.Second), last: &Alive{BootID: "one", Wall: noon}, newest: noon.Add(50 * time.Second), want: noon.Add(51 * time.Second),
		},
		"a time in a status that nobody can have written": {
			now: epoch, last: &Alive{BootID: "one", Wall: noon}, newest: noon.Add(time.Hour), want: noon.Add(time.Second),
		},
		"a clock that goes on is never set back": {
			now: noon.Add(time.Minute), last: &Alive{BootID: "one", Wall: noon}, newest: noon.Add(50 * time.Second),
		},
		"a clock that somebody put right within this boot": {
			now: noon, last: &Alive{BootID: "two", Wall: noon.Add(24 * time.Hour)},
		},
		"a clock that is synchronised already": {
			now: noon, last: &Alive{BootID: "one", Wall: noon.Add(24 * time.Hour)}, synchronised: true,
		},
		"a sign of life of a clock that was never set": {
			now: epoch, last: &Alive{BootID: "one", Wall: epoch.Add(time.Hour)},
		},
		"no sign of life": {now: epoch},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := CatchUp(tc.now, "two", tc.last, tc.newest, tc.synchronised); !got.Equal(tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
