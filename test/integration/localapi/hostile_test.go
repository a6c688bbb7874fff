package localapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"rekindle.edge/agent/localapi/answer"
)

// A pod that means ill, and others that just do not know what they do. Each gets a Status
// that says what is wrong, and has the agent hold no more than a bounded amount of memory.
var _ = Describe("A hostile client", Ordered, ContinueOnFailure, Serial, func() {
	const namespace = "hostile"
	var node *held
	var pod, kubelet *http.Client
	var token string

	// send makes a request as a pod, unless a header says otherwise.
	send := func(ctx context.Context, client *http.Client, method, target string, header http.Header, body io.Reader) (int, metav1.Status) {
		GinkgoHelper()
		request, err := http.NewRequestWithContext(ctx, method, node.config.Host+"/", body)
		Expect(err).NotTo(HaveOccurred())
		// As it is: no path is cleaned on the way.
		path, query, _ := strings.Cut(target, "?")
		request.URL = &url.URL{Scheme: "https", Host: request.URL.Host, Opaque: path, RawQuery: query}
		request.Header = header.Clone()
		if request.Header == nil {
			request.Header = http.Header{}
		}
		if client == pod && request.Header.Get("Authorization") == "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Header.Get("Retry-After")).To(BeEmpty())
		var status metav1.Status
		if response.StatusCode >= 400 {
			Expect(json.Unmarshal(answer, &status)).To(Succeed(), "%d %q", response.StatusCode, answer)
			Expect(status.Kind).To(Equal("Status"))
			Expect(status.Code).To(BeEquivalentTo(response.StatusCode))
			Expect(status.Message).NotTo(BeEmpty())
		}
		return response.StatusCode, status
	}
	alive := func(ctx context.Context) {
		GinkgoHelper()
		begin := time.Now()
		code, _ := send(ctx, kubelet, http.MethodGet, "/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D"+nodeName, nil, nil)
		Expect(code).To(Equal(http.StatusOK))
		Expect(time.Since(begin)).To(BeNumerically("<", promptly), "kubelet has to wait")
	}

	BeforeAll(func(ctx context.Context) {
		opts := metav1.CreateOptions{}
		_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, opts)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"default", "reader"} {
			_, err = admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, opts)
			Expect(err).NotTo(HaveOccurred())
		}
		_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "hostile"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list", "watch"}}},
		}, opts)
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "hostile"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "hostile"},
		}, opts)
		Expect(err).NotTo(HaveOccurred())
		large := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "large", Annotations: map[string]string{"fill": strings.Repeat("x", 200<<10)}},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		_, err = admin.CoreV1().Services(namespace).Create(ctx, large, opts)
		Expect(err).NotTo(HaveOccurred())
		create(ctx, namespace, "web")
		request, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "reader", &authenticationv1.TokenRequest{}, opts)
		Expect(err).NotTo(HaveOccurred())
		token = request.Status.Token

		node = startHeld(identity)
		node.copy(ctx)
		node.handler.Access = node.access(ctx)
		kubelet, err = rest.HTTPClientFor(node.config)
		Expect(err).NotTo(HaveOccurred())
		pod, err = rest.HTTPClientFor(&rest.Config{Host: node.config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: node.config.CAData}})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() answer.Reach { reach, _ := node.server.Reach(); return reach }).WithTimeout(timeout).Should(Equal(answer.Linked))
		code, _ := send(ctx, pod, http.MethodGet, "/api/v1/services?resourceVersion=0", nil, nil)
		Expect(code).To(Equal(http.StatusOK))
		code, _ = send(ctx, pod, http.MethodGet, "/api/v1/services?resourceVersion=0&watch=1&timeoutSeconds=1", nil, nil)
		Expect(code).To(Equal(http.StatusOK))
	})

	as := func(name, value string) http.Header { return http.Header{http.CanonicalHeaderKey(name): {value}} }
	const (
		own       = "/api/v1/pods?fieldSelector=spec.nodeName%3D" + nodeName
		webStatus = "/api/v1/namespaces/" + namespace + "/pods/web/status"
	)
	// Each is answered the same with the link up and down, but where an API server alone can
	// tell: then it is 503 while cut off.
	cases := func() {
		DescribeTable("is told what is wrong", func(ctx context.Context, asNode bool, method, target string, header http.Header, body string, codes ...int) {
			client := pod
			if asNode {
				client = kubelet
			}
			code, status := send(ctx, client, method, target, header, strings.NewReader(body))
			want := codes[0]
			if reach, _ := node.server.Reach(); reach == answer.CutOff && len(codes) > 1 {
				want = codes[1]
			}
			Expect(code).To(Equal(want), "%s", status.Message)
			alive(ctx)
		},
			Entry("of a version that is no number", true, "GET", own+"&resourceVersion=abc", nil, "", 400),
			Entry("of a negative version", true, "GET", own+"&resourceVersion=-1", nil, "", 400),
			Entry("of a version of 30 digits", true, "GET", own+"&resourceVersion=123456789012345678901234567890", nil, "", 400),
			Entry("of a version far ahead", true, "GET", own+"&resourceVersion=18446744073709551615", nil, "", 504),
			Entry("of a watch from far ahead", true, "GET", own+"&watch=1&resourceVersion=9223372036854775807", nil, "", 504),
			Entry("of a continue token of its own making", true, "GET", own+"&limit=1&continue=eyJ2IjoxLCJuIjoiYSJ9", nil, "", 410),
			Entry("of a continue token that is none", true, "GET", own+"&limit=1&continue=%00%ff", nil, "", 410),
			Entry("of a limit that is no number", true, "GET", own+"&limit=x", nil, "", 400),
			Entry("of a selector without end", true, "GET", "/api/v1/services?labelSelector="+strings.Repeat("(", 2000), nil, "", 400),
			Entry("of an unknown match", true, "GET", own+"&resourceVersion=1&resourceVersionMatch=Latest", nil, "", 422),
			Entry("of a form that there is not", true, "GET", own, as("Accept", "text/html"), "", 406),
			Entry("of a form in a thousand parts", true, "GET", own, as("Accept", strings.Repeat("a/b;q=0.1,", 1000)), "", 406),
			Entry("of a patch of no type", true, "PATCH", webStatus, as("Content-Type", "text/plain"), "{}", 415),
			Entry("of a patch that is no JSON", true, "PATCH", webStatus, as("Content-Type", "application/strategic-merge-patch+json"), "{", 400),
			Entry("of a patch as deep as a well", true, "PATCH", webStatus, as("Content-Type", "application/merge-patch+json"), strings.Repeat(`{"a":`, 20000)+"1"+strings.Repeat("}", 20000), 400),
			Entry("of a body that is too large", true, "PATCH", webStatus, as("Content-Type", "application/merge-patch+json"), `{"a":"`+strings.Repeat("x", 4<<20)+`"}`, 413),
			Entry("of a token request that is protobuf by its head alone", true, "POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts/reader/token", as("Content-Type", "application/vnd.kubernetes.protobuf"), "k8s\x00\xff\xff\xff\xff", 403, 503),
			Entry("of somebody else's name", false, "GET", "/api/v1/services?resourceVersion=0", as("Impersonate-User", "system:admin"), "", 403, 503),
			Entry("of somebody else's group", true, "GET", own+"&resourceVersion=0", http.Header{"Impersonate-User": {"x"}, "Impersonate-Group": {"system:masters"}}, "", 403, 503),
			Entry("of another namespace's secrets", false, "GET", "/api/v1/namespaces/kube-system/secrets?resourceVersion=0", nil, "", 403, 403),
			Entry("of secrets by a way around", false, "GET", "/api/v1/namespaces/"+namespace+"/services/../secrets", nil, "", 403, 503),
			Entry("of secrets by an encoded way around", false, "GET", "/api/v1/namespaces/"+namespace+"%2F..%2Fkube-system/secrets?resourceVersion=0", nil, "", 403, 503),
			Entry("of a name with a slash in it", false, "GET", "/api/v1/namespaces/"+namespace+"/secrets/a%2Fb", nil, "", 403, 503),
			Entry("of a resource that there is not", false, "GET", "/apis/no.such.group/v1/things", nil, "", 403, 503),
			Entry("of a write", false, "POST", "/api/v1/namespaces/"+namespace+"/pods", as("Content-Type", "application/json"), `{"metadata":{"name":"x"}}`, 403, 503),
			Entry("of a leader's lease", false, "PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader", as("Content-Type", "application/json"), "{}", 403, 503),
			Entry("of a status that is kubelet's to write", false, "PATCH", webStatus, as("Content-Type", "application/merge-patch+json"), `{"status":{"phase":"Failed"}}`, 403, 503),
			Entry("of a token that nobody signed", false, "GET", "/api/v1/services?resourceVersion=0", as("Authorization", "Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4In0."), "", 401),
			Entry("of a token that is none, for what the node does not hold", false, "GET", "/api/v1/endpoints", as("Authorization", "Bearer x"), "", 401),
			Entry("of a front proxy's headers alone", false, "GET", "/api/v1/services?resourceVersion=0", http.Header{"Authorization": {"Basic eDp5"}, "X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, "", 401),
		)
	}

	Context("while the API server answers", cases)

	It("has the agent hold no more than a bounded amount of memory", func(ctx context.Context) {
		heap := func() uint64 {
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			return stats.HeapInuse + stats.StackInuse
		}
		before := heap()
		config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the agent is the one that is tested
		address := strings.TrimPrefix(node.config.Host, "https://")
		var mu sync.Mutex
		var conns []net.Conn
		refused, watching := 0, 0
		var running sync.WaitGroup
		slots := make(chan struct{}, 16)
		for i := range 900 {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				defer GinkgoRecover()
				conn, err := tls.DialWithDialer(&net.Dialer{Timeout: timeout}, "tcp", address, config)
				Expect(err).NotTo(HaveOccurred())
				mu.Lock()
				conns = append(conns, conn)
				mu.Unlock()
				_ = conn.SetDeadline(time.Now().Add(timeout))
				switch i % 3 {
				case 0, 1: // watches, of which nothing is read any more
					_, err = fmt.Fprintf(conn, "GET /api/v1/services?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", token)
				case 2: // large bodies that never come
					_, err = fmt.Fprintf(conn, "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 3000000\r\n\r\nx", token)
				}
				Expect(err).NotTo(HaveOccurred())
				if i%3 == 2 {
					return
				}
				head := make([]byte, 13)
				_, err = io.ReadFull(conn, head)
				Expect(err).NotTo(HaveOccurred())
				mu.Lock()
				defer mu.Unlock()
				switch {
				case bytes.HasSuffix(head, []byte(" 200 ")):
					watching++
				case bytes.HasSuffix(head, []byte(" 429 ")):
					refused++
				default:
					Fail(string(head))
				}
			})
		}
		running.Wait()
		defer func() {
			for _, conn := range conns {
				_ = conn.Close()
			}
		}()
		Expect(watching).To(BeNumerically(">=", 500), "%d were refused", refused)
		Expect(refused).To(BeNumerically(">", 0))
		alive(ctx)
		// What this test holds itself is in it too.
		Expect(int64(heap())-int64(before)).To(BeNumerically("<", 128<<20), "bytes for 900 connections")
	})

	Context("while it does not", Ordered, func() {
		BeforeAll(func(ctx context.Context) {
			upstream.StopAPIServer()
			DeferCleanup(func(ctx context.Context) { Expect(upstream.StartAPIServer(ctx)).To(Succeed()) })
			Eventually(func() answer.Reach { reach, _ := node.server.Reach(); return reach }).WithTimeout(timeout).Should(Equal(answer.CutOff))
		})
		cases()
	})
})
