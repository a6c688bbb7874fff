package main

import (
	"context"
	"errors"
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
	"rekindle.edge/agent/daemon"
	"rekindle.edge/agent/gate"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/kubeletpki"
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

// newGate makes the CRI endpoint.
func newGate(log logr.Logger, settings config.Config) *gate.Gate {
	return gate.New(gate.Options{Log: log, Socket: wiring.Hook{Dir: wiring.RunDir}.CRISocket(), Endpoint: settings.CRIEndpoint})
}

// timeStarts tells the record of this boot of the calls by which kubelet starts pods, until
// it is closed.
func timeStarts(cri *gate.Gate, witness daemon.Witness) {
	open, over := witness.Recovery()
	if !open {
		return
	}
	stop := cri.Watch(host.SystemClock{}.Boot, witness.CallEnded)
	go func() {
		<-over
		stop()
	}()
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

// wire serves the local API and the gate, and keeps kubelet pointed at them until ctx ends.
// It calls ready once, when kubelet may start: wired, or on its own if they cannot serve. While
// kubelet is still wired by an agent before this one, it is not ready until it serves:
// systemd then takes kubelet away. Tell hears whether kubelet is wired.
func wire(ctx context.Context, settings config.Config, server *localapi.Server, cri *gate.Gate, units wiring.Units, wanted *mode, ready func(), tell func(error)) {
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
			return both(
				func() error { return server.Check(ctx, localAddress) },
				func() error { return cri.Check(ctx) },
			)
		})
	})
	listeners, criListener := listen(ctx, settings.LinkLocalAddress, cri.Socket, failed)
	if criListener == nil {
		return
	}
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	running.Go(func() {
		defer cancel()
		if err := server.Run(serving, listeners); err != nil {
			log.Error(err, "Local API has failed")
		}
	})
	running.Go(func() {
		defer cancel()
		if err := cri.Serve(serving, criListener); err != nil {
			log.Error(err, "Gate has failed")
		}
	})
	err := both(
		func() error { return server.Check(serving, localAddress) },
		func() error { return cri.Answers(serving) },
	)
	if err != nil {
		log.Error(err, "Local API or gate does not answer, kubelet stays as it is")
		failed()
		<-ctx.Done()
		return
	}
	keeper := &wiring.Keeper{
		Hook:    hook,
		Kubelet: wiring.Service{Unit: settings.KubeletUnit, Units: units},
		Runtime: settings.CRIEndpoint,
		Observe: wanted.observe, Undecided: wanted.undecided,
		Clock: clock.RealClock{},
		Tell:  tell,
	}
	wanted.wait(serving)
	certificates(serving, settings, wanted.observe)
	keeper.Begin(serving)
	ready()
	keeper.Run(serving)
}

// certificates mends what kubelet would not start with, before it does, and keeps its
// certificates on the disk from then on. In a policy's mode Observe it only says what it has
// found.
func certificates(ctx context.Context, settings config.Config, observe func() bool) {
	log := logr.FromContextOrDiscard(ctx)
	dir := filepath.Join(settings.KubeletRootDir, "pki")
	if client := kubeletpki.ClientDamage(dir); client != "" {
		log.Info("Kubelet's client certificate is damaged: kubelet will not start, or not reach the API server. Join the node anew, or put the file back", "found", client)
	}
	if observe() {
		if found := kubeletpki.Damage(dir); found != "" {
			log.Info("Kubelet's serving certificate is damaged and kubelet will not start; it is left, since the policy's mode is Observe. Remove both files", "directory", dir, "found", found)
		}
		return
	}
	found, err := kubeletpki.Mend(dir)
	switch {
	case err != nil:
		log.Error(err, "Kubelet's serving certificate is damaged and kubelet will not start. Remove both files", "directory", dir, "found", found)
	case found != "":
		log.Info("Kubelet's serving certificate was damaged and is moved aside, kubelet makes a new one", "directory", dir, "found", found)
	}
	go (&kubeletpki.Syncer{Dir: dir, Clock: clock.RealClock{}}).Run(ctx)
}

// both checks at once: each has a bound of its own, and the watchdog waits for them.
func both(a, b func() error) error {
	other := make(chan error, 1)
	go func() { other <- b() }()
	return errors.Join(a(), <-other)
}

// listen takes systemd's sockets, or opens its own, however often that takes. The gate's is
// nil when ctx has ended before.
func listen(ctx context.Context, linkLocal, criSocket string, failed func()) (local []net.Listener, cri net.Listener) {
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
	local, others := byNetwork(given)
	for told := ""; ; {
		var localErr, criErr error
		local, localErr = localapi.Listen(ctx, local, linkLocal) // those that could be opened stay open
		if cri == nil {
			cri, criErr = gate.Listen(ctx, others, criSocket)
		}
		err := errors.Join(localErr, criErr)
		if err == nil {
			return local, cri
		}
		if err.Error() != told {
			told = err.Error()
			log.Error(err, "Local API or gate cannot listen, trying again")
		}
		failed()
		select {
		case <-ctx.Done():
			return local, cri
		case <-time.After(listenRetry):
		}
	}
}

// byNetwork tells the local API's sockets from the gate's. Systemd leaves nil where a
// descriptor is no socket.
func byNetwork(given []net.Listener) (tcp, unix []net.Listener) {
	for _, listener := range given {
		switch {
		case listener == nil:
		case listener.Addr().Network() == "unix":
			unix = append(unix, listener)
		default:
			tcp = append(tcp, listener)
		}
	}
	return tcp, unix
}

// watchdog tells systemd that the agent is alive for as long as it is well.
func watchdog(ctx context.Context, log logr.Logger, well func() error) {
	limit, err := sddaemon.SdWatchdogEnabled(false)
	if err != nil || limit == 0 {
		return
	}
	for ctx.Err() == nil {
		if err := well(); err != nil {
			log.Error(err, "Local API or gate does not answer itself")
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
