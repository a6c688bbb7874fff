// Command rekindle-manager turns EdgeRecoveryPolicies into one NodeRecovery for each node
// and sums up what the nodes report. It runs in the cluster, where any number of replicas
// may: one leads, the others stand by with a warm cache.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/controllers"
)

// version is set by the linker.
var version = "dev"

// stopTimeout is how long the manager may take to stop: less than the grace period of its
// pod (15 s in config/manager).
const stopTimeout = 5 * time.Second

// flags are all settings of the manager, beside --kubeconfig, which is for running it
// outside of a cluster.
type flags struct {
	leaderElect             bool
	leaderElectionID        string
	leaderElectionNamespace string
	healthAddress           string
	metricsAddress          string
	verbosity               int
	version                 bool
}

func (f *flags) register(set *flag.FlagSet) {
	set.BoolVar(&f.leaderElect, "leader-elect", true, "Act only while holding the leader lease. Needed with more than one replica.")
	set.StringVar(&f.leaderElectionID, "leader-election-id", "rekindle-manager", "Name of the leader lease.")
	set.StringVar(&f.leaderElectionNamespace, "leader-election-namespace", "", "Namespace of the leader lease. Empty: the manager's own namespace.")
	set.StringVar(&f.healthAddress, "health-probe-bind-address", ":8081", "Address that serves /healthz and /readyz; 0 switches them off.")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8443", "Address that serves /metrics over TLS to whom the API server allows it; 0 switches it off.")
	set.IntVar(&f.verbosity, "v", 0, "Log verbosity: 0 logs changes, 4 what each pass did.")
	set.BoolVar(&f.version, "version", false, "Print the version and exit.")
}

func main() {
	var f flags
	f.register(flag.CommandLine)
	flag.Parse()
	if f.version {
		fmt.Println(version)
		return
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-f.verbosity)}))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	if err := run(f); err != nil {
		log.Error(err, "Manager failed")
		os.Exit(1)
	}
}

// run returns when the process is told to stop, or with the reason why it cannot go on.
func run(f flags) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("building scheme: %w", err)
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no access to a cluster: run in one, or set --kubeconfig: %w", err)
	}
	// A policy for thousands of nodes is thousands of writes; the API server's priority and
	// fairness is the better judge of what it can take.
	config.QPS, config.Burst = 100, 200

	grace := stopTimeout
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache:  controllers.CacheOptions(),
		Metrics: metricsserver.Options{
			BindAddress:    f.metricsAddress,
			SecureServing:  true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		HealthProbeBindAddress:  f.healthAddress,
		LeaderElection:          f.leaderElect,
		LeaderElectionID:        f.leaderElectionID,
		LeaderElectionNamespace: f.leaderElectionNamespace,
		// The process ends right after the manager has stopped, so the next leader need not
		// wait for the lease to run out.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &grace,
	})
	if err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding health check: %w", err)
	}
	if err := controllers.Setup(mgr); err != nil {
		return err
	}
	ctrl.Log.Info("Starting", "version", version)
	if err := start(ctrl.SetupSignalHandler(), mgr); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// start runs the manager until the context ends. The manager itself does not return when it
// is told to stop before its cache is filled (no API server in reach, a right missing): it
// spins until it is killed. It leads nothing then and has nothing to hand over.
func start(ctx context.Context, mgr ctrl.Manager) error {
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(stopTimeout + time.Second):
		return fmt.Errorf("told to stop, and not done after %s", stopTimeout)
	}
}
