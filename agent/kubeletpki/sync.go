package kubeletpki

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Certificates appear when kubelet first starts and when it renews them, which may be soon
// after the agent's start; later a look now and then will do.
const (
	soon, soonEvery = 10 * time.Minute, time.Second
	laterEvery      = 10 * time.Second
)

// Syncer brings kubelet's certificates to the disk when they have changed.
type Syncer struct {
	Dir   string
	Clock clock.Clock

	// synced is what each file was like when it was brought to the disk.
	synced map[string]stamp
}

type stamp struct {
	size     int64
	modified time.Time
	target   string
}

// Run looks until ctx ends. A file that cannot be synced is told once, and tried again.
func (s *Syncer) Run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	started, told := s.Clock.Now(), ""
	for {
		if err := s.round(); err != nil && err.Error() != told {
			told = err.Error()
			log.Error(err, "Kubelet's certificates cannot be brought to the disk, trying again")
		}
		pause := soonEvery
		if s.Clock.Since(started) > soon {
			pause = laterEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Clock.After(pause):
		}
	}
}

// round syncs what has changed, and the directory with it.
func (s *Syncer) round() error {
	paths, err := filepath.Glob(filepath.Join(s.Dir, "kubelet*"))
	if err != nil {
		return err
	}
	changed := map[string]stamp{}
	for _, path := range paths {
		now, err := stampOf(path)
		if err != nil || s.synced[path] == now {
			continue // a file that is gone again needs nothing
		}
		if now.target == "" {
			if err := syncPath(path); err != nil {
				return err
			}
		}
		changed[path] = now
	}
	if len(changed) == 0 {
		return nil
	}
	if err := syncPath(s.Dir); err != nil {
		return err
	}
	if s.synced == nil {
		s.synced = map[string]stamp{}
	}
	for path, now := range changed {
		s.synced[path] = now
	}
	return nil
}

func stampOf(path string) (stamp, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, err
	}
	target := ""
	if info.Mode()&os.ModeSymlink != 0 {
		if target, err = os.Readlink(path); err != nil {
			return stamp{}, err
		}
	}
	return stamp{info.Size(), info.ModTime(), target}, nil
}
