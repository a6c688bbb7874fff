package torture

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rekindle.edge/agent/snapshot/durable"
)

// harm changes a file and says what it did.
func harm(t *testing.T, random *rand.Rand, path string) string {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer file.Close()
	info, err := file.Stat()
	must(t, err)
	size, page := info.Size(), int64(os.Getpagesize())
	switch random.IntN(8) {
	case 0:
		to := random.Int64N(size)
		must(t, file.Truncate(to))
		return fmt.Sprint("cut to ", to)
	case 1:
		to := random.Int64N(size/page+1) * page
		must(t, file.Truncate(to))
		return fmt.Sprint("cut to page ", to/page)
	case 2:
		// A page that never reached the disk, or reached another place.
		from, to := random.Int64N(size/page)*page, random.Int64N(size/page)*page
		content := make([]byte, page)
		if random.IntN(2) == 0 {
			_, err := file.ReadAt(content, from)
			must(t, err)
		}
		_, err := file.WriteAt(content, to)
		must(t, err)
		return fmt.Sprintf("page %d over page %d", from/page, to/page)
	}
	// Where a bit flips: anywhere, in a head, in the header of a page, or in the first of
	// its elements, which say where keys, values and further pages are.
	offset := random.Int64N(size)
	switch random.IntN(4) {
	case 0:
		offset = random.Int64N(2)*page + random.Int64N(80)
	case 1:
		offset = random.Int64N(size/page)*page + random.Int64N(16)
	case 2:
		offset = random.Int64N(size/page)*page + 16 + random.Int64N(96)
	}
	var old [1]byte
	if _, err := file.ReadAt(old[:], offset); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	bit := random.IntN(8)
	_, err = file.WriteAt([]byte{old[0] ^ 1<<bit}, offset)
	must(t, err)
	return fmt.Sprintf("bit %d of byte %d on page %d", bit, offset%page, offset/page)
}

func TestDamagedWhileOff(t *testing.T) {
	inLanes(t, damagings, func(t *testing.T, lane, rounds int) {
		n := newNode(t.TempDir())
		random := rand.New(rand.NewPCG(uint64(lane), 2))
		outcomes := map[outcome]int{}
		seed := random.Uint64()
		r := writeAndKill(t, n.dir, seed, 1, longestWriting, killed)
		for round := range rounds {
			if round%10 == 0 && round > 0 {
				// Go on from sound files.
				_, number := n.judge(t, seed, r, "undamaged")
				n.keep(t, seed, number)
				seed = random.Uint64()
				r = writeAndKill(t, n.dir, seed, n.number+1, longestWriting, killed)
			}
			saved := n.dir + ".saved"
			copyTree(t, n.dir, saved)
			did := harm(t, random, filepath.Join(stateDir(n.dir), durable.FileName))
			if generations, err := durable.Generations(stateDir(n.dir)); err == nil && len(generations) > 0 && random.IntN(3) == 0 {
				path, err := filepath.Glob(filepath.Join(stateDir(n.dir), "generation-*"))
				must(t, err)
				did += ", and of the newest generation " + harm(t, random, path[len(path)-1])
			}
			what := fmt.Sprintf("lane %d round %d: %s", lane, round, did)
			result, _ := n.judge(t, seed, r, what)
			outcomes[result]++
			// What was decided holds at the next start.
			if again, _ := n.judge(t, seed, r, what+", second start"); again != result {
				t.Errorf("%s: the first start is %s, the second %s", what, result, again)
			}
			must(t, os.RemoveAll(n.dir))
			must(t, os.Rename(saved, n.dir))
			if t.Failed() {
				return
			}
		}
		t.Logf("%d damaged files: %v", rounds, outcomes)
	})
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	must(t, os.RemoveAll(to))
	if output, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copying: %v: %s", err, strings.TrimSpace(string(output)))
	}
}
