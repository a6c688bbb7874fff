package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// removeDead removes the labs in base whose owner no longer lives.
func removeDead(ctx context.Context, base string, kept bool) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		number, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(base, entry.Name())
		owner, _ := os.ReadFile(filepath.Join(dir, ownerFile))
		if _, ok := alive(string(owner)); ok {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, keptFile)); err == nil && !kept {
			continue
		}
		if err := release(ctx, number, dir); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// release takes away everything of one lab but its directory. It works from number
// and directory alone and may run again over what an earlier attempt left.
func release(ctx context.Context, number int, dir string) error {
	var errs []error
	errs = append(errs, killRecorded(dir))
	for _, h := range Hierarchies() {
		errs = append(errs, RemoveCgroup(filepath.Join(h.Mountpoint, cgroupName(number))))
	}
	if os.Getuid() == 0 {
		errs = append(errs, removeNetwork(ctx, number), unmountBelow(dir), detachLoops(ctx, dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("lab %s: %w", dir, err)
	}
	return nil
}

func killRecorded(dir string) error {
	records, _ := filepath.Glob(filepath.Join(dir, pidsDir, "*"))
	for _, record := range records {
		id, err := os.ReadFile(record)
		if err != nil {
			continue
		}
		pid, ok := alive(string(id))
		if !ok {
			continue
		}
		_ = unix.Kill(pid, unix.SIGKILL)
		if err := waitFor(5*time.Second, func() bool { _, ok := alive(string(id)); return !ok }); err != nil {
			return fmt.Errorf("process %d (%s) survives SIGKILL", pid, filepath.Base(record))
		}
	}
	return nil
}

// unmountBelow unmounts what lies in dir, innermost first.
func unmountBelow(dir string) error {
	points, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, point := range slices.Backward(points) {
		// A killed process gives up its mount namespace a little later than its pid.
		err := waitFor(5*time.Second, func() bool { return unix.Unmount(point, 0) == nil })
		if err != nil {
			err = unix.Unmount(point, unix.MNT_DETACH)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}

func mountsBelow(dir string) ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	return points, nil
}

func detachLoops(ctx context.Context, dir string) error {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	var errs []error
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(backing), dir+"/") {
			continue
		}
		device := "/dev/" + strings.Split(file, "/")[3]
		if _, err := Run(ctx, "losetup", "-d", device); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// waitFor polls until done or the time is over.
func waitFor(limit time.Duration, done func() bool) error {
	for end := time.Now().Add(limit); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("timed out")
		}
	}
	return nil
}
