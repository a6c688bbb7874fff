package localapi

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var _ = Describe("passing through", Ordered, func() {
	It("is the node to the API server, with the node's rights and no more", func(ctx SpecContext) {
		node := nodeClient()
		_, err := node.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		review, err := node.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status.UserInfo.Username).To(Equal("system:node:" + nodeName))
		_, err = node.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).NotTo(MatchError(ContainSubstring("rekindle-agent")))
	}, SpecTimeout(timeout))

	It("feeds kubelet's informers, with each change as it happens", func(ctx SpecContext) {
		factory := informers.NewSharedInformerFactoryWithOptions(nodeClient(), 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = "metadata.name=" + nodeName
		}))
		lister := factory.Core().V1().Nodes().Lister()
		informer := factory.Core().V1().Nodes().Informer()
		factory.Start(ctx.Done())
		Expect(cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)).To(BeTrue())
		for _, value := range []string{"one", "two"} {
			patch := []byte(`{"metadata":{"labels":{"step":"` + value + `"}}}`)
			_, err := admin.CoreV1().Nodes().Patch(ctx, nodeName, types.MergePatchType, patch, metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Eventually(func(g Gomega) {
				node, err := lister.Get(nodeName)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(node.Labels).To(HaveKeyWithValue("step", value))
			}).WithTimeout(2 * time.Second).WithPolling(pause).Should(Succeed())
		}
	}, SpecTimeout(timeout))

	It("passes a token on, with the token's rights and not the node's", func(ctx SpecContext) {
		const namespace, name = "default", "reader"
		_, err := admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list"}}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		reader := withToken(token.Status.Token)
		Eventually(ctx, func() error {
			_, err := reader.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
			return err
		}).WithTimeout(timeout).WithPolling(pause).Should(Succeed())
		_, err = reader.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the node may, this token may not: %v", err)

		_, err = withToken("made-up").CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
	}, SpecTimeout(timeout))

	It("refuses nobody with 401 and another node with 403", func(ctx SpecContext) {
		nobody := kubernetes.NewForConfigOrDie(rest.AnonymousClientConfig(local(upstream.Admin())))
		_, err := nobody.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)

		config, err := upstream.Node("edge-2")
		Expect(err).NotTo(HaveOccurred())
		_, err = kubernetes.NewForConfigOrDie(local(config)).CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`"system:node:edge-2" is not this node's`)))
	}, SpecTimeout(timeout))

	It("says 503 while the API server is away, never Retry-After, and goes on when it is back", func(ctx SpecContext) {
		node := nodeClient()
		upstream.StopAPIServer()
		Eventually(ctx, func() error {
			_, err := node.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
			return err
		}).WithTimeout(timeout).WithPolling(pause).Should(Satisfy(apierrors.IsServiceUnavailable))

		start := time.Now()
		var code int
		result := node.CertificatesV1().RESTClient().Post().Resource("certificatesigningrequests").
			Body(&certificatesv1.CertificateSigningRequest{}).Do(ctx).StatusCode(&code)
		Expect(result.Error()).To(HaveOccurred())
		Expect(code).To(Equal(http.StatusServiceUnavailable))
		_, retry := apierrors.SuggestsClientDelay(result.Error())
		Expect(retry).To(BeFalse())
		Expect(time.Since(start)).To(BeNumerically("<", time.Second))

		Expect(upstream.StartAPIServer(ctx)).To(Succeed())
		Eventually(ctx, func() error {
			_, err := node.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
			return err
		}).WithTimeout(5 * time.Second).WithPolling(pause).Should(Succeed())
	}, SpecTimeout(time.Minute))
})

func withToken(token string) kubernetes.Interface {
	config := rest.AnonymousClientConfig(local(upstream.Admin()))
	config.BearerToken = token
	return kubernetes.NewForConfigOrDie(config)
}
