// Package source turns what happens on the node and at the API server into the timed
// events of a timeline. Every source stamps an event when it sees it, before anything
// else is done with it, and ends when its context does.
package source

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/host"
	"rekindle.edge/agent/timeline"
)

// Emit takes an event. It may be called by several sources at once.
type Emit func(timeline.Event)

const (
	// processPoll is how often systemd is asked until kubelet is there, and programPoll how
	// often the process is looked at until it runs its program.
	processPoll = 50 * time.Millisecond
	programPoll = 10 * time.Millisecond
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
	// Command is a process's command name.
	Command(pid int) (string, error)
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
	if program, err := k.Units.InitStarted(ctx); err == nil && program >= process && program <= k.Clock.Boot() {
		return program, nil
	}
	return process, nil
}

// awaitProcess waits for kubelet's main process, and then until that runs its program: on a
// machine that is busy booting, systemd's child takes a while to become kubelet.
func (k Kubelet) awaitProcess(ctx context.Context, emit Emit) bool {
	log := logr.FromContextOrDiscard(ctx)
	told := false
	// before is when it was last looked and was not there. Nil: never.
	var before *time.Duration
	for {
		pid, err := k.Units.MainPID(ctx, k.Unit)
		if err != nil && ctx.Err() == nil {
			if !told {
				log.Info("systemd does not answer, looking for kubelet in the process table", "unit", k.Unit, "reason", err.Error())
				told = true
			}
			pid, err = k.Processes.FindProcess(kubeletCommand)
		}
		now, pause := k.Clock.Boot(), processPoll
		if err == nil && pid > 0 {
			command, err := k.Processes.Command(pid)
			if err == nil && runsProgram(command) {
				if start, err := k.Processes.ProcessStart(pid); err == nil {
					emit(timeline.KubeletStarted{At: programStart(start, before, now)})
					return true
				}
			} else if err == nil {
				pause = programPoll
			}
			// A process that has ended since is none: the next one is looked for.
		}
		before = &now
		if !host.Sleep(ctx, pause) {
			return false
		}
	}
}

// runsProgram says whether a unit's process is past the part of its life in which it is
// still systemd's own: it has systemd's name then, or that of the program in parentheses.
func runsProgram(command string) bool {
	return command != "" && command[0] != '(' && !strings.HasPrefix(command, "systemd") && !strings.HasPrefix(command, "sd-")
}

// programStart is when a process that started at a time began to run its program, which it
// did after the look before this one. Who did not look before knows the process only.
func programStart(process time.Duration, before *time.Duration, now time.Duration) time.Duration {
	if before == nil {
		return process
	}
	if now-*before > 2*processPoll {
		// The agent itself had to wait for a processor; it happened some time in between.
		return max(process, *before)
	}
	return max(process, now)
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
		if !host.Sleep(ctx, healthPoll) {
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
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
