package durable

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// A damaged page makes bbolt panic in a goroutine of its own, fault on what is not in the
// file, or go round in circles. So a file is checked in a process of its own, and what
// has passed there is opened here.

// CheckCommand is the hidden command of the agent that checks a file.
const CheckCommand = "check-store"

// checkingVariable is set in the checking process. It starts no other one: a program that
// does not know CheckCommand would start itself without end.
const checkingVariable = "REKINDLE_CHECKING_STORE"

// How the checking process ends.
const (
	exitSound = iota
	_         // a panic of Go ends with 2, and 1 is anything
	_
	exitDoubtful
	exitDamaged
	exitUnreadable
)

const (
	// checkCPUSeconds is more than the slowest node needs for a full store; what needs more
	// turns in circles. Waiting for a slow disk does not count.
	checkCPUSeconds = 4
	// checkTimeout bounds that wait.
	checkTimeout = 30 * time.Second
	// checkMemory is what the process may use beside the content: a circle may grow.
	checkMemory = 256 << 20
)

// Checker checks a file in another process.
type Checker struct {
	// Command runs CheckMain with the arguments that are added to it.
	Command []string
	// CPUSeconds bounds the processor time, MemoryBytes the memory; 0: the default.
	CPUSeconds, MemoryBytes uint64
}

// SelfChecker runs this program again.
func SelfChecker() *Checker { return &Checker{Command: []string{"/proc/self/exe", CheckCommand}} }

// check returns nil, ErrDoubtful, ErrDamaged, or an error that may go away.
func (c *Checker) check(path string) error {
	if c == nil {
		return checkFile(path)
	}
	if os.Getenv(checkingVariable) != "" {
		return guard(func() error { return checkFile(path) })
	}
	seconds := cmp.Or(c.CPUSeconds, checkCPUSeconds)
	var memory uint64 = checkMemory
	if info, err := os.Stat(path); err == nil {
		memory += 4 * uint64(info.Size())
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	arguments := append(append([]string{}, c.Command[1:]...),
		strconv.FormatUint(seconds, 10),
		strconv.FormatUint(cmp.Or(c.MemoryBytes, memory), 10), path)
	command := exec.CommandContext(ctx, c.Command[0], arguments...)
	command.Env = append(os.Environ(), checkingVariable+"=1")
	var output bytes.Buffer
	command.Stderr = &output
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		// No process to be had is no damage. What guard cannot catch is rare.
		return guard(func() error { return checkFile(path) })
	case ctx.Err() != nil:
		return fmt.Errorf("checking %s took more than %s: is the disk failing?", path, checkTimeout)
	}
	message, _, _ := strings.Cut(strings.TrimSpace(output.String()), "\n")
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		// The kernel counts roughly.
		if used := exit.UserTime() + exit.SystemTime(); used < time.Duration(seconds)*time.Second*8/10 {
			return fmt.Errorf("checking %s was killed: is the node out of memory?", path)
		}
		return fmt.Errorf("%w: checking it came to no end", ErrDamaged)
	}
	switch exit.ExitCode() {
	case exitDoubtful:
		return ErrDoubtful
	case exitUnreadable:
		return errors.New(message)
	case exitDamaged:
		return fmt.Errorf("%w%s", ErrDamaged, strings.TrimPrefix(message, ErrDamaged.Error()))
	}
	return fmt.Errorf("%w: checking it ended with %w: %s", ErrDamaged, exit, message)
}

// CheckMain is the checking process. Its arguments are the processor seconds and the bytes
// of memory that it may use, and the file.
func CheckMain(arguments []string, stderr io.Writer) int {
	err := checkLimited(arguments)
	if err != nil {
		// Without the message the code still says what was found.
		_, _ = fmt.Fprintln(stderr, err)
	}
	switch {
	case err == nil:
		return exitSound
	case errors.Is(err, ErrDamaged):
		return exitDamaged
	case errors.Is(err, ErrDoubtful):
		return exitDoubtful
	}
	return exitUnreadable
}

func checkLimited(arguments []string) error {
	if len(arguments) != 3 {
		return errors.New("seconds, bytes and file expected")
	}
	if err := errors.Join(limit(unix.RLIMIT_CPU, arguments[0]), limit(unix.RLIMIT_DATA, arguments[1])); err != nil {
		return err
	}
	return checkFile(arguments[2])
}

// limit ends this process when it uses more than a sound file can cost.
func limit(resource int, text string) error {
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err
	}
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value})
}

// checkFile reads all of a file, and checks that its pages are what bbolt takes them for.
func checkFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return fmt.Errorf("%w: it is empty", ErrDamaged)
	}
	return guard(func() error {
		heads := checkHeads(path)
		if heads != nil && !errors.Is(heads, ErrDoubtful) {
			return heads
		}
		db, err := openDB(path, true)
		if err != nil {
			return err
		}
		_, found, err := load(db)
		if err == nil && found == version {
			err = checkPages(db)
		}
		err = errors.Join(err, db.Close())
		if isNewer(err) {
			// Sound, as far as this agent can tell.
			return nil
		}
		if err != nil {
			return err
		}
		return heads
	})
}

// checkPages finds pages that are used twice, free and used, or neither: the next commits
// would overwrite what is in use.
func checkPages(db *bolt.DB) error {
	return db.View(func(tx *bolt.Tx) error {
		var first error
		for err := range tx.Check() {
			if first == nil {
				first = fmt.Errorf("%w: %w", ErrDamaged, err)
			}
		}
		return first
	})
}
