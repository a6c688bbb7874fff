// Package source turns what happens on the node and at the API server into the timed
// events of a timeline. Every source stamps an event when it sees it, before anything
// else is done with it, and ends when its context does.
package source

import (
	"context"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/timeline"
)

// Emit takes an event. It may be called by several sources at once.
type Emit func(timeline.Event)

const (
	// processPoll is how often the process table is looked at until kubelet is there. The
	// time of the edge comes from the process itself, so this is no error of it.
	processPoll = 200 * time.Millisecond
	// healthPoll is how often kubelet's health endpoint is asked until it answers.
	healthPoll = 100 * time.Millisecond
	// healthTimeout bounds one question.
	healthTimeout = time.Second
	initPID       = 1
)

// Processes finds processes and when they started.
type Processes interface {
	// ProcessStart is a process's start as time since kernel start.
	ProcessStart(pid int) (time.Duration, error)
	// FindProcess is a process by its command name, 0 if there is none.
	FindProcess(command string) (int, error)
}

// Units asks the service manager.
type Units interface {
	// MainPID is a unit's main process, 0 while it has none.
	MainPID(ctx context.Context, unit string) (int, error)
	// InitStarted is the start of the first user-space program, as time since kernel start.
	InitStarted(ctx context.Context) (time.Duration, error)
}

// Kubelet watches init and kubelet come up.
type Kubelet struct {
	Clock     host.Clock
	Processes Processes
	Units     Units
	// Unit is kubelet's service unit.
	Unit string
	// Healthz is the URL of kubelet's health endpoint.
	Healthz string
}

// kubeletCommand is looked for when there is no systemd to ask.
const kubeletCommand = "kubelet"

// Run emits InitStarted, KubeletStarted and KubeletHealthy, and returns after the last.
func (k Kubelet) Run(ctx context.Context, emit Emit) {
	if at, err := k.initStart(ctx); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Start of init is unknown, the kernel phase stays unset")
	} else {
		emit(timeline.InitStarted{At: at})
	}
	if !k.awaitProcess(ctx, emit) {
		return
	}
	k.awaitHealth(ctx, emit)
}

// initStart is the start of init. The kernel makes process 1 early and loads its drivers
// before that becomes a program, which is the moment that systemd remembers. Its stamp is of
// a clock that a container may not share with the agent: what lies before the process or
// after now is no stamp of this boot.
func (k Kubelet) initStart(ctx context.Context) (time.Duration, error) {
	process, err := k.Processes.ProcessStart(initPID)
	if err != nil {
		return 0, err
	}
	program, err := k.Units.InitStarted(ctx)
	if err != nil || program < process || program > k.Clock.Boot() {
		return process, nil
	}
	return program, nil
}

func (k Kubelet) awaitProcess(ctx context.Context, emit Emit) bool {
	log := logr.FromContextOrDiscard(ctx)
	told := false
	for {
		pid, err := k.Units.MainPID(ctx, k.Unit)
		if err != nil && ctx.Err() == nil {
			if !told {
				log.Info("systemd does not answer, looking for kubelet in the process table", "unit", k.Unit, "reason", err.Error())
				told = true
			}
			pid, err = k.Processes.FindProcess(kubeletCommand)
		}
		if err == nil && pid > 0 {
			// It may have ended since: then the next one is looked for.
			if at, err := k.Processes.ProcessStart(pid); err == nil {
				emit(timeline.KubeletStarted{At: at})
				return true
			}
		}
		if !sleep(ctx, processPoll) {
			return false
		}
	}
}

func (k Kubelet) awaitHealth(ctx context.Context, emit Emit) {
	client := &http.Client{Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	asked := false
	for {
		if healthy(ctx, client, k.Healthz) {
			emit(timeline.KubeletHealthy{At: k.Clock.Boot(), Late: !asked})
			return
		}
		asked = true
		if !sleep(ctx, healthPoll) {
			return
		}
	}
}

func healthy(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// sleep waits and says whether the context is still on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
