package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/localapi/answer"
	"rekindle.edge/api/v1alpha1"
)

// Every metric is described in docs/metrics.md. None names the node: whoever collects them
// adds that.
var (
	podListTrusted = prometheus.NewDesc("rekindle_pod_list_trusted",
		"1 when the stored list of pods may be served, 0 when it may lack some and is held back.", nil, nil)
	apiServerAnswers = prometheus.NewDesc("rekindle_api_server_answers",
		"1 while the API server answers the local API, 0 while it does not or nothing was heard yet.", nil, nil)
	recoverySeconds = prometheus.NewDesc("rekindle_last_recovery_seconds",
		"Time from kernel start until the last expected pod was Ready, in seconds, of the newest record; absent when there is none or it is incomplete.",
		[]string{"connectivity"}, nil)
	recoveryComplete = prometheus.NewDesc("rekindle_last_recovery_complete",
		"1 when the newest record is complete, 0 when it is not; absent when there is none.", []string{"connectivity"}, nil)
	restartReady = prometheus.NewDesc("rekindle_restart_ready",
		"1 when the node would come back by itself if it restarted now, cut off, 0 when it or a pod of it would not; absent while that cannot be told.", nil, nil)
	forecastSeconds = prometheus.NewDesc("rekindle_forecast_seconds",
		"Recovery to expect of the next restart that is cut off, in seconds from kernel start; absent while nothing is known of the node's restarts.", nil, nil)
	findings = prometheus.NewDesc("rekindle_findings",
		"Reasons why the node would not come back as it should; absent until there was a dry run.", []string{"severity"}, nil)
)

// nodeCollector reads what is not counted but is.
type nodeCollector struct {
	trusted func() (bool, string)
	linked  func() bool
	// last is the newest record, nil if there is none.
	last func() *v1alpha1.Recovery
	// verdict is the condition RestartReady, and the number of findings by severity.
	verdict func() (metav1.Condition, map[v1alpha1.Severity]int)
	// forecast is nil until there was a dry run.
	forecast func() *v1alpha1.Forecast
}

// Describe implements prometheus.Collector.
func (c nodeCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{podListTrusted, apiServerAnswers, recoverySeconds, recoveryComplete, restartReady, forecastSeconds, findings} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c nodeCollector) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	trusted, _ := c.trusted()
	gauge(podListTrusted, truth(trusted))
	gauge(apiServerAnswers, truth(c.linked()))
	ready, found := c.verdict()
	if ready.Status == metav1.ConditionTrue || ready.Status == metav1.ConditionFalse {
		gauge(restartReady, truth(ready.Status == metav1.ConditionTrue))
	}
	for severity, count := range found {
		gauge(findings, float64(count), string(severity))
	}
	if forecast := c.forecast(); forecast != nil && forecast.BasedOn > 0 {
		gauge(forecastSeconds, float64(forecast.TotalMilliseconds)/1000)
	}
	if last := c.last(); last != nil {
		connectivity := "offline"
		if last.ConnectivityAtStart == v1alpha1.ConnectivityOnline {
			connectivity = "online"
		}
		gauge(recoveryComplete, truth(last.Result == v1alpha1.RecoveryComplete), connectivity)
		if last.TotalMilliseconds != nil {
			gauge(recoverySeconds, float64(*last.TotalMilliseconds)/1000, connectivity)
		}
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// exposition makes the counters of the local API and what shows them with the rest.
func exposition(c nodeCollector, others ...prometheus.Collector) (*answer.Metrics, http.Handler, error) {
	registry := prometheus.NewRegistry()
	for _, collector := range append(others, c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})) {
		if err := registry.Register(collector); err != nil {
			return nil, nil, err
		}
	}
	requests, err := answer.NewMetrics(registry)
	return requests, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}
