package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/snapshot"
)

const (
	// aliveEvery is the period of the sign of life.
	aliveEvery = time.Minute
	// stopQuestion bounds the question to systemd whether the system is stopping.
	stopQuestion = 2 * time.Second
)

// stop writes how the agent was stopped.
func (d Daemon) stop(ctx context.Context, l *loop, bootID string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopQuestion)
	defer cancel()
	mark := boot.Mark{BootID: bootID, Stop: boot.StopAgent, StopWall: d.Machine.Clock.Wall()}
	stopping, err := d.Machine.Units.Stopping(ctx)
	if err != nil {
		l.log.Info("systemd does not say whether the system is stopping, so this is no clean end of the boot", "reason", err.Error())
	} else if stopping {
		mark.Stop = boot.StopSystem
	}
	l.log.Info("Agent is stopping", "systemStopping", stopping)
	return errors.Join(l.flush(ctx), l.store.PutMark(mark))
}

// keepAlive writes the sign of life. A disk that is full or gone is told once.
func (d Daemon) keepAlive(ctx context.Context, store *snapshot.Store, bootID string) {
	log := logr.FromContextOrDiscard(ctx)
	ticker := time.NewTicker(aliveEvery)
	defer ticker.Stop()
	told := false
	for {
		err := store.PutAlive(boot.Alive{
			BootID: bootID, Boot: d.Machine.Clock.Boot(), Wall: d.Machine.Clock.Wall(), MadeUp: d.Machine.madeUp(),
		})
		if err != nil && !told {
			log.Error(err, "Sign of life cannot be written, trying again every minute")
		}
		told = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
