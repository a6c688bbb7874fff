package spec

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/test/edgenode"
)

// Token is one of an account with a role of the cluster, which are made with the first.
func Token(ctx context.Context, client kubernetes.Interface, name, role string) string {
	GinkgoHelper()
	accounts, bindings := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem), client.RbacV1().ClusterRoleBindings()
	_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	Expect(ctrl.IgnoreAlreadyExists(err)).To(Succeed())
	_, err = bindings.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{})
	Expect(ctrl.IgnoreAlreadyExists(err)).To(Succeed())
	token, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(86400))},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}

// ProxyThroughAgent has a node's kube-proxy ask the local API, with a token of its own, so
// that it knows services while the node is cut off.
func ProxyThroughAgent(ctx context.Context, client kubernetes.Interface, node *edgenode.Node) {
	GinkgoHelper()
	_, err := node.ExecInput(ctx, strings.NewReader(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:7443", certificate-authority: /run/rekindle/pki/ca.crt}}]
users: [{name: u, user: {token: `+Token(ctx, client, "node-proxy", "system:node-proxier")+`}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`), "sh", "-c", "cat > /var/lib/kube-proxy/kubeconfig")
	Expect(err).NotTo(HaveOccurred())
	Expect(node.Systemctl(ctx, "restart", "kube-proxy.service")).To(Succeed())
}

// Service puts a service in front of the web pod app, until the end of the spec, and gives
// its URL.
func Service(ctx context.Context, client kubernetes.Interface, name, app string) string {
	GinkgoHelper()
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(edgenode.WebPort)}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.CoreV1().Services(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
	return "http://" + service.Spec.ClusterIP + "/"
}
