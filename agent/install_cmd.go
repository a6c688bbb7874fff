package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/install"
	"rekindle.edge/agent/warmup/images"
)

// kubeletPatience is how long kubelet may take to be well after the change.
const kubeletPatience = time.Minute

// installCommand runs install or uninstall.
func installCommand(name string, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", config.DefaultPath, "configuration `file`; the default one may be missing")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := installOrNot(ctx, name, *path, stdout); err != nil {
		_, _ = fmt.Fprintf(stderr, "rekindle-agent %s: %v\n", name, err)
		return 1
	}
	return 0
}

func installOrNot(ctx context.Context, name, path string, stdout io.Writer) error {
	settings, err := config.Load(path)
	if err != nil {
		return err
	}
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	units := &host.Systemd{}
	defer units.Close()
	runtime := cri.New(settings.CRIEndpoint)
	defer func() { _ = runtime.Close() }()
	installer := install.Installer{
		Node: install.Machine{
			Settings: settings,
			Units:    units,
			Identity: identity(settings),
			Runtime:  runtime,
			Kubelets: host.Files{Root: "/"}.FindProcess,
		},
		Root: "/", Settings: settings, Binary: binary, Patience: kubeletPatience,
		Say: func(format string, args ...any) { _, _ = fmt.Fprintf(stdout, format+"\n", args...) },
	}
	if name == "uninstall" {
		if err := installer.Uninstall(ctx); err != nil {
			return err
		}
		installer.Say("kubelet runs on its own")
		if err := images.Unpin(ctx, runtime); err != nil {
			installer.Say("%v", err)
		}
		return nil
	}
	if err := installer.Install(ctx); err != nil {
		return err
	}
	installer.Say("rekindle-agent %s is installed", version)
	return nil
}
