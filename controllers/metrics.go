package controllers

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"rekindle.edge/api/v1alpha1"
)

// Every metric is described in docs/metrics.md. Labels that name objects are those of
// policies (a handful, written by people) and of the pools in their status (at most 64
// each); never nodes.

var (
	writesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rekindle_writes_total",
		Help: "Writes to the API server, by operation (apply and delete of a NodeRecovery, status of a policy) and result (success, error).",
	}, []string{"operation", "result"})
	aggregationSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "rekindle_policy_aggregation_seconds",
		Help:    "Time to sum up the nodes of one policy, in seconds.",
		Buckets: []float64{0.0001, 0.001, 0.01, 0.1, 1},
	})
)

func countWrite(operation string, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	writesTotal.WithLabelValues(operation, result).Inc()
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("rekindle_"+name, help, labels, nil)
}

var (
	policyNodes = newDesc("policy_nodes",
		"Nodes of a policy, by state as in its status.nodes.", "policy", "state")
	policyP95 = newDesc("policy_recovery_p95_seconds",
		"95th percentile of the recoveries of the policy's slowest pool, in seconds; absent when there is none.", "policy")
	policyTargetMet = newDesc("policy_target_met",
		"1 when every measured pool of the policy meets its target, 0 when one does not; absent when nothing was measured.", "policy")
	policyAccepted = newDesc("policy_accepted",
		"1 when the policy is carried out as written, 0 when it is not; its Accepted condition says why.", "policy")
	poolSamples = newDesc("pool_recovery_samples",
		"Recoveries that the pool's percentiles are based on.", "policy", "pool", "connectivity")
	poolRecovery = newDesc("pool_recovery_seconds",
		"Percentiles of the pool's recoveries, in seconds; absent where one falls on an incomplete recovery.", "policy", "pool", "connectivity", "quantile")
)

// collector reads the policies' status from the cache when it is asked: there is nothing to
// keep in step, and nothing to remove when a policy goes.
type collector struct {
	reader client.Reader
}

// registerMetrics registers with the registry that the manager serves. A second manager in
// the same process (tests) replaces nothing and is no error.
func registerMetrics(registry metrics.RegistererGatherer, reader client.Reader) error {
	for _, c := range []prometheus.Collector{writesTotal, aggregationSeconds, &collector{reader}} {
		if err := registry.Register(c); err != nil && !isRegistered(err) {
			return err
		}
	}
	return nil
}

func isRegistered(err error) bool {
	return errors.As(err, new(prometheus.AlreadyRegisteredError))
}

// Describe implements prometheus.Collector.
func (*collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{policyNodes, policyP95, policyTargetMet, policyAccepted, poolSamples, poolRecovery} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	// Until the cache is filled the list fails, or waits. The other metrics are wanted then
	// more than ever; an error here would hide them all.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var policies v1alpha1.EdgeRecoveryPolicyList
	if err := c.reader.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.Log.V(4).Info("No metrics of policies", "reason", err.Error())
		return
	}
	for i := range policies.Items {
		collectPolicy(&policies.Items[i], func(desc *prometheus.Desc, value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
		})
	}
}

type emit func(desc *prometheus.Desc, value float64, labels ...string)

func collectPolicy(policy *v1alpha1.EdgeRecoveryPolicy, gauge emit) {
	status := &policy.Status
	for state, nodes := range map[string]int32{
		"matched":           status.Nodes.Matched,
		"applied":           status.Nodes.Applied,
		"restart_ready":     status.Nodes.RestartReady,
		"not_restart_ready": status.Nodes.NotRestartReady,
		"unknown":           status.Nodes.Unknown,
		"offline":           status.Nodes.Offline,
	} {
		gauge(policyNodes, float64(nodes), policy.Name, state)
	}
	if status.P95Milliseconds != nil {
		gauge(policyP95, float64(*status.P95Milliseconds)/1000, policy.Name)
	}
	collectCondition(policy, v1alpha1.ConditionTargetMet, policyTargetMet, gauge)
	collectCondition(policy, v1alpha1.ConditionAccepted, policyAccepted, gauge)
	for i := range status.Pools {
		pool := &status.Pools[i]
		collectStats(policy.Name, pool.Name, "offline", pool.Offline, gauge)
		collectStats(policy.Name, pool.Name, "online", pool.Online, gauge)
	}
}

func collectCondition(policy *v1alpha1.EdgeRecoveryPolicy, kind string, desc *prometheus.Desc, gauge emit) {
	condition := meta.FindStatusCondition(policy.Status.Conditions, kind)
	switch {
	case condition == nil || condition.Status == metav1.ConditionUnknown:
	case condition.Status == metav1.ConditionTrue:
		gauge(desc, 1, policy.Name)
	default:
		gauge(desc, 0, policy.Name)
	}
}

func collectStats(policy, pool, connectivity string, stats *v1alpha1.RecoveryStats, gauge emit) {
	if stats == nil {
		return
	}
	gauge(poolSamples, float64(stats.Samples), policy, pool, connectivity)
	for quantile, milliseconds := range map[string]*int64{
		"0.5": stats.P50Milliseconds, "0.9": stats.P90Milliseconds, "0.95": stats.P95Milliseconds, "1": stats.MaxMilliseconds,
	} {
		if milliseconds != nil {
			gauge(poolRecovery, float64(*milliseconds)/1000, policy, pool, connectivity, quantile)
		}
	}
}
