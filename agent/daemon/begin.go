package daemon

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// longestRetry is the longest pause between attempts to begin.
const longestRetry = 5 * time.Second

// insist calls f until it succeeds. It is false when ctx has ended before.
func (d Daemon) insist(ctx context.Context, message string, failed func(), f func() error) bool {
	log := logr.FromContextOrDiscard(ctx)
	told := ""
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, longestRetry) {
		err := f()
		if err == nil {
			return true
		}
		if err.Error() != told {
			told = err.Error()
			log.Error(err, message)
		}
		failed()
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// begin finds out which boot this is and goes on with its record, or opens one.
func (d Daemon) begin(log logr.Logger, store *snapshot.Store, bootID string) (*loop, error) {
	contents, err := store.Load()
	if err != nil {
		return nil, err
	}
	alive, err := snapshot.LastAlive(d.Config.StateDir)
	if err != nil {
		log.Error(err, "Last sign of life cannot be read, the length of the outage stays unset")
	}
	l := newLoop(log, d.Machine, store, contents, bootID)
	l.retain()
	start := decide(bootID, d.Machine.Clock.Boot(), contents, alive)
	switch {
	case start.previous == nil && contents.Mark == nil:
		log.Info("Store is new, measuring begins with the next boot", "bootID", bootID)
	case start.previous == nil:
		log.Info("Agent was restarted within a boot", "bootID", bootID, "recoveryOpen", start.open != nil)
	default:
		log.Info("Node has restarted", "bootID", bootID, "previousBootID", start.previous.BootID, "previousEnd", start.previous.End)
	}
	if start.open == nil {
		log.Info("This boot is not measured, or has been")
	} else {
		log.Info("Measuring this boot", "expectedPods", len(start.open.Expected), "notReadyBefore", start.open.NotReadyBefore, "targetSeconds", start.open.TargetSeconds)
	}
	l.adoptStart(start, boot.Mark{BootID: bootID})
	l.unclean = contents.Mark == nil || start.previous != nil && start.previous.End != v1alpha1.PreviousEndClean
	if l.tracker == nil {
		close(l.closed)
	}
	return l, nil
}
