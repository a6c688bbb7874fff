package torture

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/snapshot/durable"
)

// The writer is a process of its own, so that it can be killed at any instant. It says on
// its standard output before each step that it begins, and after it that it is done.

const writeCommand = "write-store"

// sealEvery is the number of steps between two sealed generations.
const sealEvery = 40

// TestMain lets the test binary be the writer and the checker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case durable.CheckCommand:
			os.Exit(durable.CheckMain(os.Args[2:], os.Stderr))
		case writeCommand:
			if err := write(os.Args[2], os.Args[3], os.Args[4]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case fullCommand:
			if err := fullByLimit(os.Args[2]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	// The race detector would let every child wait for a second before it ends.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

func stateDir(dir string) string   { return filepath.Join(dir, "state") }
func kubeletDir(dir string) string { return filepath.Join(dir, "kubelet") }

func write(dir, seedText, firstText string) error {
	seed, err := strconv.ParseUint(seedText, 10, 64)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(firstText)
	if err != nil {
		return err
	}
	// The parent has just checked the file.
	store, err := snapshot.Open(stateDir(dir), logr.Discard())
	if err != nil {
		return err
	}
	o := store.Objects()
	o.Subscribe(kubelet(dir))
	m := read(o)
	for ; ; number++ {
		s := next(seed, number, m)
		fmt.Println("begin", number)
		if err := s.do(o); err != nil {
			return err
		}
		if s.durable {
			fmt.Println("durable", number)
		}
		m = s.model
		if number%sealEvery == 0 {
			if err := store.Seal(); err != nil {
				return err
			}
		}
	}
}

// kubelet makes a folder for every pod that it hears of, with data in it.
func kubelet(dir string) func(snapshot.Event) {
	return func(event snapshot.Event) {
		if event.Resource != snapshot.Pods {
			return
		}
		folder := filepath.Join(kubeletDir(dir), "pods", string(event.Object.UID))
		var err error
		switch event.Type {
		case snapshot.Added:
			if err = os.MkdirAll(folder, 0o700); err == nil {
				err = os.WriteFile(filepath.Join(folder, "data"), nil, 0o600)
			}
		case snapshot.Deleted:
			err = os.RemoveAll(folder)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// run is what a writer came to.
type run struct {
	// durable is the last step of which the writer knew that it is on the disk, begun the
	// last one that it began.
	durable, begun int
}

// writeAndKill lets a writer go on from a step, and kills it after a while of writing.
func writeAndKill(t *testing.T, dir string, seed uint64, first int, after time.Duration, kill func(*os.Process)) run {
	t.Helper()
	command := exec.Command("/proc/self/exe", writeCommand, dir, strconv.FormatUint(seed, 10), strconv.Itoa(first))
	output, err := command.StdoutPipe()
	must(t, err)
	var failure strings.Builder
	command.Stderr = &failure
	must(t, command.Start())
	result := run{durable: first - 1, begun: first - 1}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		what, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			break // the last line may be cut
		}
		if result.begun < first {
			time.AfterFunc(after, func() { kill(command.Process) })
		}
		if what == "begin" {
			result.begun = n
		} else {
			result.durable = n
		}
	}
	// A writer whose disk is gone may end before it is killed.
	if err := command.Wait(); command.ProcessState.Exited() && !strings.Contains(failure.String(), "input/output error") {
		t.Fatalf("the writer ended by itself: %v: %s", err, failure.String())
	}
	return result
}

func killed(process *os.Process) { _ = process.Kill() }

// folders are the pods that kubelet has data of.
func folders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(kubeletDir(dir), "pods"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
