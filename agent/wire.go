package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	sddaemon "github.com/coreos/go-systemd/v22/daemon"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/localapi"
	"rekindle.edge/agent/wiring"
)

// identity of the node, as kubelet's files have it.
func identity(settings config.Config) *localapi.IdentitySource {
	return &localapi.IdentitySource{Kubeconfigs: settings.Kubeconfigs(), CertDir: filepath.Join(settings.KubeletRootDir, "pki")}
}

// localAddress is where kubelet finds the local API.
var localAddress = net.JoinHostPort(localapi.Loopback, strconv.Itoa(localapi.Port))

// answersWithin is how long requests wait for the store to be open: as long as kubelet does.
const answersWithin = 2 * time.Second

// listenRetry is the pause before sockets that cannot be opened are tried again.
const listenRetry = 5 * time.Second

// after gives a function that calls f the n-th time it is called.
func after(n int32, f func()) func() {
	var calls atomic.Int32
	return func() {
		if calls.Add(1) == n {
			f()
		}
	}
}

// localServer makes the local API.
func localServer(log logr.Logger, settings config.Config) *localapi.Server {
	pkiDirs := []string{filepath.Join(wiring.RunDir, localapi.PKIDir), filepath.Join(settings.StateDir, localapi.PKIDir)}
	pki, err := localapi.LoadPKI(pkiDirs, localapi.Hosts(settings.LinkLocalAddress))
	if err != nil {
		log.Error(err, "Certificates of the local API are not all in order")
	}
	server := localapi.New(log, pki, identity(settings))
	server.Expect(answersWithin)
	return server
}

// wire serves the local API and keeps kubelet pointed at it until ctx ends. It calls ready
// once, when kubelet may start: wired, or on its own if the local API cannot serve. While
// kubelet is still wired by an agent before this one, it is not ready until it serves:
// systemd then takes kubelet away. Tell hears whether kubelet is wired.
func wire(ctx context.Context, settings config.Config, server *localapi.Server, units wiring.Units, ready func(), tell func(error)) {
	log := logr.FromContextOrDiscard(ctx)
	ready = sync.OnceFunc(ready)
	hook := wiring.Hook{Dir: wiring.RunDir, Server: "https://" + localAddress, CA: server.CA(), Kubeconfigs: settings.Kubeconfigs()}
	failed := func() {
		if !hook.IsSet() {
			ready()
		}
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		watchdog(ctx, log, func() error {
			if !hook.IsSet() {
				return nil // nobody depends on it
			}
			return server.Check(ctx, localAddress)
		})
	})
	listeners := listen(ctx, settings.LinkLocalAddress, failed)
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	running.Go(func() {
		defer cancel()
		if err := server.Run(serving, listeners); err != nil {
			log.Error(err, "Local API has failed")
		}
	})
	if err := server.Check(serving, localAddress); err != nil {
		log.Error(err, "Local API does not answer, kubelet stays as it is")
		failed()
		<-ctx.Done()
		return
	}
	keeper := &wiring.Keeper{
		Hook:    hook,
		Kubelet: wiring.Service{Unit: settings.KubeletUnit, Units: units},
		Clock:   clock.RealClock{},
		Tell:    tell,
	}
	keeper.Begin(serving)
	ready()
	keeper.Run(serving)
}

// listen takes systemd's sockets, or opens its own, however often that takes.
func listen(ctx context.Context, linkLocal string, failed func()) []net.Listener {
	log := logr.FromContextOrDiscard(ctx)
	address, err := netip.ParseAddr(linkLocal)
	if err == nil {
		err = localapi.AddAddress(address)
	}
	if err != nil {
		log.Error(err, "Pods will not reach the local API")
	}
	given, err := activation.Listeners()
	if err != nil {
		log.Error(err, "Sockets of systemd cannot be used")
	}
	for told := ""; ; {
		listeners, err := localapi.Listen(ctx, given, linkLocal)
		if err == nil {
			return listeners
		}
		given = listeners // those that could be opened stay open
		if err.Error() != told {
			told = err.Error()
			log.Error(err, "Local API cannot listen, trying again")
		}
		failed()
		select {
		case <-ctx.Done():
			return given
		case <-time.After(listenRetry):
		}
	}
}

// watchdog tells systemd that the agent is alive for as long as it is well.
func watchdog(ctx context.Context, log logr.Logger, well func() error) {
	limit, err := sddaemon.SdWatchdogEnabled(false)
	if err != nil || limit == 0 {
		return
	}
	for ctx.Err() == nil {
		if err := well(); err != nil {
			log.Error(err, "Local API does not answer itself")
		} else if _, err := sddaemon.SdNotify(false, sddaemon.SdNotifyWatchdog); err != nil {
			log.Error(err, "systemd could not be told that the agent is alive")
		}
		select {
		case <-ctx.Done():
		case <-time.After(limit / 3):
		}
	}
}

// generate is run by systemd, see wiring.Generate.
func generate(args []string, stderr io.Writer) int {
	if len(args) != 3 {
		_, _ = fmt.Fprintln(stderr, "Usage: rekindle-agent generate KUBELET_UNIT CONTAINERD_UNIT DIRECTORY (systemd runs this)")
		return 2
	}
	if err := wiring.Generate("/", args[2], args[0], args[1]); err != nil {
		_, _ = fmt.Fprintf(stderr, "rekindle-agent: kubelet's unit is left as it is: %v\n", err)
		return 1
	}
	return 0
}
