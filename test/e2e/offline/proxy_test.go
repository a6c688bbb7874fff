package offline

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"rekindle.edge/test/edgenode"
)

// proxyToken is a token of an account that may do what kube-proxy does.
func proxyToken(ctx context.Context) string {
	GinkgoHelper()
	const name = "node-proxy"
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-proxier"},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	token, err := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(86400))},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}

var _ = Describe("kube-proxy through the local API", func() {
	It("leads to pods at the addresses they have after a restart that is cut off", func(ctx SpecContext) {
		By("kube-proxy has its own token, and the local API")
		kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:7443", certificate-authority: /run/rekindle/pki/ca.crt}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, proxyToken(ctx))
		_, err := node.Exec(ctx, "sh", "-c", "cat > /var/lib/kube-proxy/kubeconfig <<'EOF'\n"+kubeconfig+"EOF\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(node.Systemctl(ctx, "restart", "kube-proxy.service")).To(Succeed())
		service, err := client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "shop"},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": podName(0)},
				Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(edgenode.WebPort)}},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.CoreV1().Services(metav1.NamespaceDefault).Delete(ctx, service.Name, metav1.DeleteOptions{})).To(Succeed())
		})
		// From the node, and from within another pod.
		reach := func() error {
			curl := []string{"curl", "-sf", "--max-time", "2", "http://" + service.Spec.ClusterIP}
			said, err := node.Exec(ctx, curl...)
			if err == nil {
				said, err = node.Exec(ctx, append([]string{"nsenter", "--net=/proc/" + process(ctx, podName(1)) + "/ns/net", "--"}, curl...)...)
			}
			if err == nil && strings.TrimSpace(said) != podName(0) {
				err = fmt.Errorf("%q answers", said)
			}
			return err
		}
		Eventually(ctx, reach).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), func() string { return tail("kube-proxy.log") + journal() })

		By("the node restarts cut off")
		was := upstreamPods(ctx)[podName(0)].Status.PodIP
		powerCut(ctx, edgenode.WANBlackhole)
		waitReadyHere(ctx, allPods()...)
		output, err := kubectl(ctx, "get", "pod", podName(0), "-o", "jsonpath={.status.podIP}")
		Expect(err).NotTo(HaveOccurred(), output)
		AddReportEntry("address before and after", was+" "+output)
		Eventually(ctx, reach).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), func() string { return tail("kube-proxy.log") + journal() })
		Expect(node.RestoreWAN(ctx)).To(Succeed())
		inStep(ctx)
	}, SpecTimeout(5*time.Minute))
})
