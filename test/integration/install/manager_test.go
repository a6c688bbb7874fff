package install

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

// The real binary, with a certificate in the name of its service account: what RBAC in
// config/ does not give, it does not have.
var _ = Describe("rekindle-manager", Ordered, func() {
	var binary, config, health, metrics string
	var manager *gexec.Session

	start := func(args ...string) *gexec.Session {
		GinkgoHelper()
		session, err := gexec.Start(exec.Command(binary, append([]string{"--kubeconfig", config}, args...)...), GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { session.Kill().Wait() })
		return session
	}
	lease := func() *coordinationv1.Lease {
		lease := &coordinationv1.Lease{}
		_ = admin.Get(ctx, client.ObjectKey{Namespace: "rekindle-system", Name: "rekindle-manager"}, lease)
		return lease
	}

	BeforeAll(func() {
		binary = filepath.Join(GinkgoT().TempDir(), "rekindle-manager")
		build := exec.Command("go", "build", "-ldflags", "-X main.version=v9.9.9", "-o", binary, root)
		output, err := build.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", output)

		_, user := as("system:serviceaccount:rekindle-system:rekindle-manager",
			"system:serviceaccounts", "system:serviceaccounts:rekindle-system")
		config = kubeconfig(user)
		health, metrics = freeAddress(), freeAddress()

		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", Labels: map[string]string{"zone": "edge"}}}
		policy := &v1alpha1.EdgeRecoveryPolicy{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
		policy.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: node.Labels}
		for _, object := range []client.Object{node, policy} {
			Expect(admin.Create(ctx, object)).To(Succeed())
			DeferCleanup(func() { Expect(admin.Delete(ctx, object)).To(Succeed()) })
		}
		DeferCleanup(func() { Expect(admin.DeleteAllOf(ctx, &v1alpha1.NodeRecovery{})).To(Succeed()) })

		manager = start("--leader-election-namespace", "rekindle-system",
			"--health-probe-bind-address", health, "--metrics-bind-address", metrics)
	})

	It("prints its version", func() {
		Expect(exec.Command(binary, "--version").Output()).To(BeEquivalentTo("v9.9.9\n"))
	})

	It("leads, is ready, hands the policy to the node and says so", func() {
		Eventually(func() string { return page("http://" + health + "/readyz") }, inForce).Should(Equal("200 ok"))
		Expect(page("http://" + health + "/healthz")).To(Equal("200 ok"))
		Eventually(func() error {
			return admin.Get(ctx, client.ObjectKey{Name: "edge-1"}, &v1alpha1.NodeRecovery{})
		}, inForce).Should(Succeed())
		Expect(lease().Spec.HolderIdentity).To(HaveValue(Not(BeEmpty())))

		Eventually(func() []string {
			var events eventsv1.EventList
			Expect(admin.List(ctx, &events, client.InNamespace("default"))).To(Succeed())
			var told []string
			for _, e := range events.Items {
				if e.Regarding.Kind != "EdgeRecoveryPolicy" {
					continue // the API server tells things of its own
				}
				told = append(told, fmt.Sprintf("%s %s/%s by %s: %s", e.Reason, e.Regarding.Kind, e.Regarding.Name, e.ReportingController, e.Note))
			}
			return told
		}, inForce).Should(ConsistOf("Accepted EdgeRecoveryPolicy/edge by rekindle-manager: Nodes that follow this policy: 1."))
	})

	It("was refused nothing", func() {
		Expect(string(manager.Err.Contents())).NotTo(ContainSubstring("forbidden"))
	})

	It("is alive and not ready while it may not read what it works on", func() {
		_, stranger := as("stranger")
		health := freeAddress()
		session := start("--kubeconfig", kubeconfig(stranger), "--leader-elect=false",
			"--health-probe-bind-address", health, "--metrics-bind-address", "0")
		Eventually(func() string { return page("http://" + health + "/healthz") }, inForce).Should(Equal("200 ok"))
		Consistently(func() string { return page("http://" + health + "/readyz") }, 2*time.Second).Should(HavePrefix("500"))
		session.Terminate()
		Eventually(session, 15*time.Second).Should(gexec.Exit(), "it hangs until it is killed")
	})

	It("writes its log as JSON, one object a line", func() {
		for line := range strings.Lines(string(manager.Err.Contents())) {
			Expect(json.Unmarshal([]byte(line), &map[string]any{})).To(Succeed(), line)
		}
		Expect(manager.Err).To(gbytes.Say(`"msg":"Starting","version":"v9.9.9"`))
	})

	It("shows its metrics to whom the API server allows it, and to nobody else", func() {
		url := "https://" + metrics + "/metrics"
		Expect(page(url)).To(HavePrefix("401"))

		Expect(page(url, token("stranger"))).To(HavePrefix("403"))

		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "rekindle-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "prometheus"}},
		}
		Expect(admin.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func() { Expect(admin.Delete(ctx, binding)).To(Succeed()) })
		// Asked of the API server first: the manager keeps a refusal for half a minute.
		Eventually(func() bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:                  "system:serviceaccount:default:prometheus",
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
			}}
			Expect(admin.Create(ctx, review)).To(Succeed())
			return review.Status.Allowed
		}, inForce).Should(BeTrue())
		Expect(page(url, token("prometheus"))).To(And(
			ContainSubstring(`rekindle_policy_nodes{policy="edge",state="matched"} 1`),
			ContainSubstring(`rekindle_writes_total{operation="apply",result="success"} 1`),
		))
	})

	It("lets a second one take over within seconds when it is told to stop", func() {
		before := *lease().Spec.HolderIdentity
		health := freeAddress()
		standby := start("--leader-election-namespace", "rekindle-system",
			"--health-probe-bind-address", health, "--metrics-bind-address", "0")
		Eventually(func() string { return page("http://" + health + "/readyz") }, inForce).Should(Equal("200 ok"))
		Expect(lease().Spec.HolderIdentity).To(HaveValue(Equal(before)), "a standby is ready without leading")

		manager.Terminate()
		Eventually(manager, 10*time.Second).Should(gexec.Exit(0))
		Eventually(func() string { return *lease().Spec.HolderIdentity }, 10*time.Second).
			ShouldNot(Or(Equal(before), BeEmpty()))
		standby.Signal(syscall.SIGTERM)
		Eventually(standby, 10*time.Second).Should(gexec.Exit(0))
	})
})

// freeAddress returns an address of this machine that nothing listens on.
func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

// token makes a service account in the namespace default and returns a token of it.
func token(account string) string {
	GinkgoHelper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: account}}
	Expect(admin.Create(ctx, object)).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(admin.SubResource("token").Create(ctx, object, request)).To(Succeed())
	return request.Status.Token
}

// page returns status code and body of a page, or the error.
func page(url string, token ...string) string {
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, err := http.NewRequest(http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	for _, t := range token {
		request.Header.Set("Authorization", "Bearer "+t)
	}
	response, err := c.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}
