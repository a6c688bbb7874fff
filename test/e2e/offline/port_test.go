package offline

import (
	"bytes"
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// An asker asks kubelet on its own port, as curl with these arguments.
type asker []string

// askers are who may ask kubelet for what, and who may not.
type askers struct{ operator, scraper, stranger, nobody asker }

// newAskers makes users, an account with a token, and their rights.
func newAskers(ctx context.Context) askers {
	GinkgoHelper()
	const role, account = "kubelet-operator", "scraper"
	_, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes/proxy", "nodes/metrics"}}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "operator"},
			{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: account},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	token, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(86400))},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.RbacV1().ClusterRoles().Delete(ctx, role, metav1.DeleteOptions{})).To(Succeed())
		Expect(client.RbacV1().ClusterRoleBindings().Delete(ctx, role, metav1.DeleteOptions{})).To(Succeed())
		Expect(client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Delete(ctx, account, metav1.DeleteOptions{})).To(Succeed())
	})
	return askers{
		operator: withCertificate(ctx, "operator"),
		stranger: withCertificate(ctx, "stranger"),
		scraper:  asker{"-H", "'Authorization: Bearer " + token.Status.Token + "'"},
	}
}

// withCertificate puts a user's certificate on the node.
func withCertificate(ctx context.Context, user string) asker {
	GinkgoHelper()
	config, err := shared.User(user)
	Expect(err).NotTo(HaveOccurred())
	path := "/root/" + user + ".pem"
	_, err = node.ExecInput(ctx, bytes.NewReader(append(config.CertData, config.KeyData...)), "sh", "-c", "umask 077; cat >"+path)
	Expect(err).NotTo(HaveOccurred())
	return asker{"--cert", path}
}

// ask gives the status code.
func (a asker) ask(ctx context.Context, args string) string {
	GinkgoHelper()
	return shell(ctx, "curl -sk -o /dev/null -w '%{http_code}' --max-time 10 "+strings.Join(a, " ")+" "+
		strings.ReplaceAll(args, "KUBELET", "https://"+node.IP().String()+":10250"))
}

const (
	askLogs    = "KUBELET/containerLogs/default/web-0/web"
	askMetrics = "KUBELET/metrics"
	askRun     = "-X POST KUBELET/run/default/web-0/web"
)
