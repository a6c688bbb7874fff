package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// How much: in CI, and with REKINDLE_TORTURE set (make torture).
var (
	kills     = amount(200, 1000)
	damagings = amount(60, 1000)
	cuts      = amount(0, 50)
)

func amount(usual, full int) int {
	if os.Getenv("REKINDLE_TORTURE") != "" {
		return full
	}
	return usual
}

// lanes run beside each other: most of the time is waiting for the disk.
const lanes = 4

// longestWriting is how long a writer lives at most, after its first step.
const longestWriting = 60 * time.Millisecond

func randomDuration(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

// inLanes shares a number of rounds out.
func inLanes(t *testing.T, rounds int, f func(t *testing.T, lane, rounds int)) {
	for lane := range lanes {
		t.Run(strconv.Itoa(lane), func(t *testing.T) {
			t.Parallel()
			f(t, lane, (rounds+lanes-1)/lanes)
		})
	}
}

func TestKilledWhileWriting(t *testing.T) {
	inLanes(t, kills, func(t *testing.T, lane, rounds int) {
		n := newNode(t.TempDir())
		random := rand.New(rand.NewPCG(uint64(lane), 1))
		steps, interrupted := 0, 0
		for round := range rounds {
			seed := random.Uint64()
			r := writeAndKill(t, n.dir, seed, n.number+1, randomDuration(random, longestWriting), killed)
			what := fmt.Sprintf("lane %d round %d", lane, round)
			result, number := n.judge(t, seed, r, what)
			if result != exact {
				t.Fatalf("%s: the outcome of a kill is %q", what, result)
			}
			steps += r.begun - n.number
			if number < r.begun {
				interrupted++
			}
			n.keep(t, seed, number)
		}
		t.Logf("%d kills, %d steps, %d of them lost as they may be", rounds, steps, interrupted)
		if interrupted == 0 || steps < rounds {
			t.Error("the kills came at no interesting instant")
		}
	})
}
