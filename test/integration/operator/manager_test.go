package operator

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"rekindle.edge/controllers"
)

// resync is how often the caches hand everything to the controllers again: often, so that
// what writes without need is caught at it.
const resync = time.Second

// manager runs the controllers and sees every write that they send.
type manager struct {
	cancel context.CancelFunc
	done   chan error
	// seldom leaves the resyncs out, which mend by themselves what no event has mended.
	seldom bool

	mu   sync.Mutex
	sent []string
}

func (m *manager) start() {
	GinkgoHelper()
	watched := rest.CopyConfig(restConfig)
	watched.Wrap(func(next http.RoundTripper) http.RoundTripper { return &witness{m, next} })
	cache := controllers.CacheOptions()
	cache.SyncPeriod = ptr.To(resync)
	if m.seldom {
		cache.SyncPeriod = ptr.To(time.Hour)
	}
	mgr, err := ctrl.NewManager(watched, ctrl.Options{
		Scheme:     scheme,
		Cache:      cache,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(controllers.Setup(mgr)).To(Succeed())
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	m.done = make(chan error, 1)
	go func() { m.done <- mgr.Start(ctx) }()
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
}

func (m *manager) stop() {
	GinkgoHelper()
	m.cancel()
	Eventually(m.done, soon).Should(Receive(BeNil()))
}

// whileDown does something that the manager gets to know only after its next start.
func (m *manager) whileDown(do func()) {
	GinkgoHelper()
	m.stop()
	do()
	m.start()
}

// withoutResyncs starts the manager anew such that, until the spec ends, it acts on events
// alone.
func (m *manager) withoutResyncs() {
	GinkgoHelper()
	m.whileDown(func() { m.seldom = true })
	DeferCleanup(func() { m.whileDown(func() { m.seldom = false }) })
}

// writes returns the writes so far, events apart.
func (m *manager) writes() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.sent...)
}

// quiet waits until nothing has been written for two resyncs.
func (m *manager) quiet() {
	GinkgoHelper()
	last, since := -1, time.Now()
	Eventually(func() bool {
		if n := len(m.writes()); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 2*resync
	}, 6*soon).Should(BeTrue(), "the controllers write without end: %v", m.writes())
}

// witness notes what goes to the API server and is not a read.
type witness struct {
	manager *manager
	next    http.RoundTripper
}

func (w *witness) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && !strings.Contains(request.URL.Path, "/events") {
		w.manager.mu.Lock()
		w.manager.sent = append(w.manager.sent, request.Method+" "+request.URL.Path)
		w.manager.mu.Unlock()
	}
	return w.next.RoundTrip(request)
}
