package controllers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"rekindle.edge/api/v1alpha1"
)

// scrape returns what a registry with the controllers' metrics serves.
func scrape(t *testing.T, policies ...*policyBuilder) string {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, p := range policies {
		builder.WithObjects(p.obj())
	}
	return scrapeReader(t, builder.Build())
}

func scrapeReader(t *testing.T, reader client.Reader) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for range 2 { // a second manager in the process is no error
		if err := registerMetrics(registry, reader); err != nil {
			t.Fatal(err)
		}
	}
	response := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if response.Code != http.StatusOK {
		t.Fatal(response.Body)
	}
	return response.Body.String()
}

func measuredPolicy() *policyBuilder {
	p := makePolicy("p")
	p.Status = sumUp(p.obj(),
		follow(p.obj(), "a", "x", saying("True"), measuring(took(1500, off), failed(on))),
		offline(follow(p.obj(), "b", "x")))
	return p
}

func TestMetricsFollowTheStatus(t *testing.T) {
	got := scrape(t, measuredPolicy(), makePolicy("new"))
	for _, line := range []string{
		`rekindle_policy_nodes{policy="p",state="matched"} 2`,
		`rekindle_policy_nodes{policy="p",state="offline"} 1`,
		`rekindle_policy_nodes{policy="p",state="restart_ready"} 1`,
		`rekindle_policy_nodes{policy="new",state="matched"} 0`,
		`rekindle_policy_accepted{policy="p"} 1`,
		`rekindle_policy_target_met{policy="p"} 0`,
		`rekindle_pool_recovery_samples{connectivity="online",policy="p",pool="x"} 1`,
		`rekindle_pool_recovery_seconds{connectivity="offline",policy="p",pool="x",quantile="0.95"} 1.5`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	for _, absent := range []string{
		`rekindle_policy_recovery_p95_seconds{`,                              // falls on an incomplete recovery
		`rekindle_pool_recovery_seconds{connectivity="online"`,               // as does this
		`rekindle_policy_target_met{policy="new"}`, `accepted{policy="new"}`, // not known yet
	} {
		if strings.Contains(got, absent) {
			t.Errorf("there is a %s", absent)
		}
	}
}

func TestMetricsOfAnEmptyCacheHideNoOthers(t *testing.T) {
	countWrite("apply", nil)
	got := scrapeReader(t, interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			<-ctx.Done() // as the cache does until it is filled
			return ctx.Err()
		},
	}))
	if !strings.Contains(got, "rekindle_writes_total") || strings.Contains(got, "rekindle_policy_nodes") {
		t.Errorf("metrics:\n%s", got)
	}
}

func TestMetricsAreDocumented(t *testing.T) {
	documented, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	complete := makePolicy("p")
	complete.Status = sumUp(complete.obj(), follow(complete.obj(), "a", "x", saying("True"), measuring(took(1500, off))))
	countWrite("apply", nil)
	found := 0
	for line := range strings.Lines(scrape(t, complete)) {
		name, is := strings.CutPrefix(line, "# TYPE ")
		if !is {
			continue
		}
		found++
		if name, _, _ = strings.Cut(name, " "); !strings.Contains(string(documented), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not describe %s", name)
		}
	}
	if found < 8 {
		t.Errorf("only %d metrics were looked at", found)
	}
}
