package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// checkRate is how fast blobs are read for a check, in bytes a second: pods come first.
const checkRate = 64 << 20

// outcome of a check.
type outcome struct {
	// mended places.
	mended int
	// unchecked says why parts could not be looked at; empty: all were.
	unchecked string
}

// inspect looks quickly whether an image can start at all: its program must be there and
// must not begin with nothing but zeros, as a file does whose pages never reached the disk.
func (r *runtime) inspect(ctx context.Context, target, id string) error {
	u, err := r.unpacked(ctx, target, id)
	if errors.Is(err, errUnchecked) {
		return nil
	}
	if err != nil {
		return err
	}
	line := slices.Concat(u.config.Config.Entrypoint, u.config.Config.Cmd)
	if len(line) == 0 || !path.IsAbs(line[0]) {
		return nil
	}
	dirs := u.layers[len(u.layers)-1].dirs
	t, err := openTree(dirs)
	if err != nil {
		return err
	}
	defer t.close()
	at := t.resolve(strings.TrimPrefix(line[0], "/"))
	for _, root := range t.roots {
		info, err := root.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		file, err := root.Open(at)
		if err != nil {
			return err
		}
		head := make([]byte, 4096)
		n, _ := io.ReadFull(file, head)
		_ = file.Close()
		if !slices.ContainsFunc(head[:n], func(b byte) bool { return b != 0 }) {
			return fmt.Errorf("%s is empty", line[0])
		}
		return nil
	}
	return fmt.Errorf("%s is not there", line[0])
}

// check compares all layers of an image with their blobs, but those that skip knows, and
// mends what differs. Sound is told of each layer that is whole afterwards. An error
// says what stays damaged.
func (r *runtime) check(ctx context.Context, target, id string, skip func(chain string) bool, sound func(chain string)) (outcome, error) {
	u, err := r.unpacked(ctx, target, id)
	if errors.Is(err, errUnchecked) {
		return outcome{unchecked: err.Error()}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	limit := rate.NewLimiter(checkRate, 1<<20)
	for _, l := range u.layers {
		if skip(l.chain) {
			continue
		}
		mended, err := r.checkLayer(ctx, l, limit)
		switch {
		case errors.Is(err, errUnchecked):
			o.unchecked = err.Error()
		case err != nil:
			return o, fmt.Errorf("layer %s: %w", l.blob.Digest, err)
		}
		o.mended += mended
		sound(l.chain)
	}
	return o, nil
}

func (r *runtime) checkLayer(ctx context.Context, l layer, limit *rate.Limiter) (int, error) {
	t, err := openTree(l.dirs)
	if err != nil {
		return 0, err
	}
	defer t.close()
	open := func() (io.ReadCloser, error) {
		blob, err := r.blob(ctx, l.blob.Digest)
		return slow{blob, ctx, limit}, err
	}
	damaged, err := damagedIn(t, open)
	if err != nil || len(damaged) == 0 {
		return 0, err
	}
	if err := mend(t, open, damaged); err != nil {
		return 0, err
	}
	left, err := damagedIn(t, open)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s and %d more stay damaged", left[0], len(left)-1)
	}
	return len(damaged), err
}

// slow reads no faster than its limit.
type slow struct {
	io.ReadCloser
	ctx   context.Context
	limit *rate.Limiter
}

func (s slow) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	for left := n; left > 0; left -= min(left, s.limit.Burst()) {
		if waitErr := s.limit.WaitN(s.ctx, min(left, s.limit.Burst())); waitErr != nil {
			return n, waitErr
		}
	}
	return n, err
}

// renew gets an image's layers anew from the registry: what no longer matches its digest is
// forgotten, snapshots that nobody uses are removed, and the image is pulled. Pull is
// called once before anything is removed, to see that the registry answers.
func (r *runtime) renew(ctx context.Context, target, id string, pull func() error) error {
	if err := pull(); err != nil {
		return err
	}
	u, err := r.unpacked(ctx, target, id)
	if err != nil {
		return err
	}
	var lost []string
	first := len(u.layers)
	for i, l := range u.layers {
		blob, err := r.blob(ctx, l.blob.Digest)
		if err == nil {
			err = errors.Join(drain(blob), blob.Close())
		}
		if errors.Is(err, errContent) {
			lost, first = append(lost, l.blob.Digest), min(first, i)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	if err := r.removeChain(ctx, u.layers[first:]); err != nil {
		return err
	}
	if err := r.deleteBlobs(ctx, lost); err != nil {
		return err
	}
	return pull()
}

// sync has the unpacked files of an image, and all others with them, on the disk: the
// runtime leaves that to the kernel, which takes half a minute.
func (r *runtime) sync(ctx context.Context, target, id string) error {
	u, err := r.unpacked(ctx, target, id)
	if err != nil {
		return err
	}
	dir, err := os.Open(base(u))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return unix.Syncfs(int(dir.Fd()))
}
