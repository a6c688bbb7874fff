package mirror

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/agent/localapi/answer"
	"rekindle.edge/agent/localapi/overlay"
	"rekindle.edge/agent/snapshot"
)

// newer is an API server of a later version: pods have a field in their spec that no type of
// the agent's has, in lists and in the events of a watch.
const newer = `"fieldOfANewerServer":[{"deep":{"n":18446744073709551615}}],`

func toNewer(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil && strings.HasSuffix(r.URL.Path, "/pods") {
				response.Body = &lines{from: bufio.NewReader(response.Body), body: response.Body}
				response.Header.Del("Content-Length")
				response.ContentLength = -1
			}
			return response, err
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// lines puts the field into each line of a body.
type lines struct {
	from *bufio.Reader
	body io.Closer
	left []byte
}

func (l *lines) Read(p []byte) (int, error) {
	if len(l.left) == 0 {
		line, err := l.from.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		l.left = bytes.ReplaceAll(line, []byte(`"spec":{`), []byte(`"spec":{`+newer))
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

func (l *lines) Close() error { return l.body.Close() }

// away is an API server that is out of reach.
type away struct{ answer.Upstream }

func (away) Reach() (answer.Reach, time.Duration) { return answer.CutOff, time.Hour }

type everybody struct{ answer.Access }

func (everybody) Check(context.Context, answer.Caller, *request.RequestInfo) error { return nil }

var _ = Describe("An API server that is newer than the agent", func() {
	It("loses none of its fields on the way to kubelet, nor by what kubelet writes offline", func() {
		e := newEdge()
		pod := newPod("app")
		Expect(e.admin.Create(ctx, pod)).To(Succeed())
		e.config = toNewer(e.config)
		e.start()
		stored := func(name string) func() string {
			return func() string {
				object, _ := e.store.Objects().Get(core("pods"), namespace, name)
				return string(object.Raw)
			}
		}
		Eventually(stored("app")).Should(ContainSubstring(newer))
		By("a pod that comes by the watch")
		Expect(e.admin.Create(ctx, newPod("late"))).To(Succeed())
		Eventually(stored("late")).Should(ContainSubstring(newer))
		Expect(e.admin.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"yes"}}}`)))).To(Succeed())
		Eventually(stored("app")).Should(And(ContainSubstring(`"changed":"yes"`), ContainSubstring(newer)))

		By("cut off, after a restart of the agent")
		e.disconnect()
		Expect(e.store.Close()).To(Succeed())
		e.stop = func() {}
		store, err := snapshot.Open(e.dir, logr.Discard())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(store.Close)
		server := httptest.NewServer(localAPI(store.Objects()))
		DeferCleanup(server.Close)
		path := server.URL + "/api/v1/namespaces/" + namespace + "/pods/app"
		for _, what := range []string{
			path, server.URL + "/api/v1/pods?fieldSelector=spec.nodeName%3D" + nodeName,
			server.URL + "/api/v1/pods?watch=1&timeoutSeconds=1&fieldSelector=spec.nodeName%3D" + nodeName,
		} {
			Expect(do(http.MethodGet, what, "")).To(ContainSubstring(newer), what)
		}
		Expect(do(http.MethodPatch, path+"/status", `{"status":{"conditions":[{"type":"Ready","status":"True"}],"fieldOfANewerKubelet":{"a":1}}}`)).
			To(And(ContainSubstring(`"Ready"`), ContainSubstring("fieldOfANewerKubelet"), ContainSubstring("fieldOfANewerServer")))
		Expect(do(http.MethodGet, path, "")).To(And(ContainSubstring(newer), ContainSubstring("fieldOfANewerKubelet")))
	})
})

// localAPI answers the node from what is stored.
func localAPI(objects *snapshot.Objects) http.Handler {
	handler := &answer.Handler{
		Log: logr.Discard(), Node: func() string { return nodeName }, Objects: objects, Upstream: away{}, Access: everybody{},
		Missed: func(schema.GroupResource, string) {},
		Overlay: overlay.New(objects, func(context.Context, string, string, string, []byte) ([]byte, error) {
			return nil, errors.New("out of reach")
		}, logr.Discard(), "boot"),
	}
	DeferCleanup(answer.New(handler, clock.RealClock{}))
	requests := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := requests.NewRequestInfo(r)
		if err != nil || !handler.Serve(w, r, info, answer.Caller{Node: true}) {
			http.Error(w, "not answered", http.StatusTeapot)
		}
	})
}

func do(method, path, body string) string {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Content-Type", string(types.StrategicMergePatchType))
	response, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	answered, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK), "%s", answered)
	return string(answered)
}
