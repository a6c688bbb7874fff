// Command rekindle-agent runs on an edge node, measures how the node comes back after a
// restart and reports it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	sddaemon "github.com/coreos/go-systemd/v22/daemon"
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/daemon"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/report"
	"rekindle.edge/agent/snapshot/durable"
)

// version is set by the build.
var version = "dev"

const usage = `Usage: rekindle-agent COMMAND

Commands:
  run [--config FILE] [-v LEVEL]   measure restarts of this node and report them
  install [--config FILE]          put the agent between this node's kubelet and the API server
  uninstall [--config FILE]        take it out again; the node is what it was
  doctor [-o json|yaml] [--config FILE]
                                   say whether this node would come back by itself; exit code
                                   0: it would, 1: it or a pod of it would not, 2: cannot be told
  version                          print the version
`

// configRetry is the pause before a configuration that cannot be used is read again.
const configRetry = 5 * time.Second

// reportJitter spreads the first status write of the nodes of a cluster that comes back.
const reportJitter = 3 * time.Second

func main() {
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

func command(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch args[0] {
	case "run":
		return run(args[1:], stderr)
	case "install", "uninstall":
		return installCommand(args[0], args[1:], stdout, stderr)
	case "doctor":
		return doctorCommand(args[1:], stdout, stderr)
	case "generate":
		return generate(args[1:], stderr)
	case durable.CheckCommand:
		// Of the agent itself, and so not in the usage.
		return durable.CheckMain(args[1:], stderr)
	case "version":
		fmt.Fprintln(stdout, version)
		return 0
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "rekindle-agent: unknown command %q\n%s", args[0], usage)
	return 2
}

func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", config.DefaultPath, "configuration `file`; the default one may be missing")
	wired := flags.Bool("wire", false, "serve the local API and point kubelet at it")
	verbosity := flags.Int("v", 0, "log `level`: 0 changes, 1 writes, 4 details")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "rekindle-agent run: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(*verbosity), textlogger.Output(stderr)))
	klog.SetLogger(log)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	ctx = logr.NewContext(ctx, log)

	// A dead peer is found by its silence; client-go's default takes 45 s.
	setDefault("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "10")
	setDefault("HTTP2_PING_TIMEOUT_SECONDS", "5")
	collectLater()

	log.Info("Agent is starting", "version", version, "config", *path)
	ready := func() { notify(log) }
	retrying := ready
	if *wired {
		// Kubelet must not wait for an agent that cannot serve it.
		retrying = func() {}
	}
	settings, ok := load(ctx, *path, retrying)
	if !ok {
		return 0
	}
	files := host.Files{Root: "/"}
	units := &host.Systemd{}
	defer units.Close()
	runtime := cri.New(settings.CRIEndpoint)
	defer func() { _ = runtime.Close() }()
	d := daemon.Daemon{
		Config: settings, Version: version, ReportJitter: reportJitter, StoreOptions: storeOptions(settings, runtime),
		Machine:   daemon.Machine{Clock: host.SystemClock{}, Processes: files, Units: units, Runtime: runtime, BootID: files.BootID},
		Ready:     ready,
		Reporting: func(facts func() report.Facts) { go serveDoctor(ctx, facts) },
	}
	var suspect func(string)
	var again <-chan struct{}
	if *wired {
		// Kubelet may start when it is served and the store is open.
		d.Ready = after(2, ready)
		node := newInstalled(log, settings, runtime, files, units)
		node.plug(ctx, &d)
		suspect, again = node.warm.Suspect, node.kubelet.changed
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() { node.serve(ctx, d.Ready) })
	}
	d.DryRun = newDryRun(settings, runtime, units, *wired, d.Serving, d.Missed, suspect)
	d.DryRun.Again = again
	err := d.Run(ctx)
	cancel()
	if err != nil {
		log.Error(err, "Agent has failed")
		return 1
	}
	return 0
}

// load reads the configuration, however often it takes: kubelet waits for this unit, and
// an exit would only be followed by the next start. It calls retrying before each pause.
func load(ctx context.Context, path string, retrying func()) (config.Config, bool) {
	log := logr.FromContextOrDiscard(ctx)
	told := ""
	for {
		settings, err := config.Load(path)
		if err == nil {
			return settings, true
		}
		if err.Error() != told {
			told = err.Error()
			log.Error(err, "Configuration cannot be used, reading it again until it can; nothing is measured until then")
		}
		retrying()
		select {
		case <-ctx.Done():
			return config.Config{}, false
		case <-time.After(configRetry):
		}
	}
}

// At what growth of the heap, in percent of what is in use, garbage is collected. The start
// must be quick. An agent that has started does little and holds much: half of Go's own 100
// saves a seventh of its memory.
const (
	startGC, idleGC = 400, 50
	// startTime is more than a start takes.
	startTime = 10 * time.Second
)

// collectLater lets garbage lie while the agent starts, unless the environment says otherwise.
func collectLater() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	debug.SetGCPercent(startGC)
	time.AfterFunc(startTime, func() { debug.SetGCPercent(idleGC) })
}

// notify tells systemd that the agent is up; without systemd it does nothing.
func notify(log logr.Logger) {
	if _, err := sddaemon.SdNotify(false, sddaemon.SdNotifyReady); err != nil {
		log.Error(err, "systemd could not be told that the agent is ready")
	}
}

func setDefault(name, value string) {
	if _, set := os.LookupEnv(name); !set {
		// Setting a variable with a plain name cannot fail.
		_ = os.Setenv(name, value)
	}
}
