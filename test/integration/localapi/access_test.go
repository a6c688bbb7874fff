package localapi

import (
	"context"
	"encoding/json"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/go-jose/go-jose/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/localapi/access"
	"rekindle.edge/agent/localapi/answer"
)

// access is the node's as the agent has it, with the issuer's keys as they are now.
func (h *held) access(ctx context.Context) *access.Checker {
	_, body := ask(ctx, upstream.Admin(), "/openid/v1/jwks", "*/*")
	keys := &jose.JSONWebKeySet{}
	Expect(json.Unmarshal(body, keys)).To(Succeed())
	Expect(keys.Keys).NotTo(BeEmpty(), "%s", body)
	_, body = ask(ctx, upstream.Admin(), "/.well-known/openid-configuration", "application/json")
	var configuration struct{ Issuer string }
	Expect(json.Unmarshal(body, &configuration)).To(Succeed())
	return &access.Checker{
		Ask: h.server.Post, Clock: clock.RealClock{}, Memory: access.NewMemory(h.objects, clock.RealClock{}),
		Linked: func() bool { reach, _ := h.server.Reach(); return reach == answer.Linked },
		Tokens: &access.Tokens{
			Keys: func() (*jose.JSONWebKeySet, string) { return keys, configuration.Issuer },
			Node: h.server.Node,
			Runs: func(string, string, types.UID) bool { return false },
		},
	}
}

var _ = Describe("Access of pods", Ordered, Serial, func() {
	var node *held
	var pod kubernetes.Interface
	const namespace = "access"
	read := func(ctx context.Context, in string) error {
		_, err := pod.CoreV1().Services(in).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err
	}

	metrics := func(ctx context.Context) (string, error) {
		body, err := pod.CoreV1().RESTClient().Get().AbsPath("/metrics").Do(ctx).Raw()
		return string(body), err
	}

	BeforeAll(func(ctx context.Context) {
		opts := metav1.CreateOptions{}
		_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, opts)
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, opts)
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list"}}},
		}, opts)
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		}, opts)
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "metrics"},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		}, opts)
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "metrics"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metrics"},
		}, opts)
		Expect(err).NotTo(HaveOccurred())
		token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "reader", &authenticationv1.TokenRequest{}, opts)
		Expect(err).NotTo(HaveOccurred())

		node = startHeld(identity)
		node.copy(ctx)
		node.handler.Access = node.access(ctx)
		node.handler.Exposition = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("its own")) })
		config := rest.AnonymousClientConfig(node.config)
		config.CAData, config.BearerToken, config.QPS = node.config.CAData, token.Status.Token, -1
		pod = kubernetes.NewForConfigOrDie(config)
	})

	It("is what the API server says while it answers", func(ctx context.Context) {
		Expect(read(ctx, namespace)).To(Succeed())
		Expect(apierrors.IsForbidden(read(ctx, "default"))).To(BeTrue())
		Expect(metrics(ctx)).To(Equal("its own"))
		Expect(node.objects.Remembered("access")).To(HaveLen(2), "what was allowed, and nothing else")
	})

	It("is what it has allowed while it does not", func(ctx context.Context) {
		upstream.StopAPIServer()
		DeferCleanup(func(ctx context.Context) { Expect(upstream.StartAPIServer(ctx)).To(Succeed()) })
		Eventually(func() answer.Reach { reach, _ := node.server.Reach(); return reach }).WithTimeout(timeout).Should(Equal(answer.CutOff))
		Expect(read(ctx, namespace)).To(Succeed())
		// A start of the agent later.
		before := node.handler.Access.(*access.Checker)
		node.handler.Access = &access.Checker{
			Ask: before.Ask, Clock: before.Clock, Linked: before.Linked, Memory: access.NewMemory(node.objects, before.Clock),
			Tokens: &access.Tokens{Keys: before.Tokens.Keys, Node: before.Tokens.Node, Runs: before.Tokens.Runs},
		}
		Expect(read(ctx, namespace)).To(Succeed())
		Expect(metrics(ctx)).To(Equal("its own"))
		Expect(apierrors.IsServiceUnavailable(read(ctx, ""))).To(BeTrue(), "nobody was asked about all namespaces")
		_, err := pod.CoreV1().Services(namespace).Get(ctx, "none", metav1.GetOptions{})
		Expect(apierrors.IsServiceUnavailable(err)).To(BeTrue(), "%v", err)
	})
})
