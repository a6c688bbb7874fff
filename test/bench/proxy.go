package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"rekindle.edge/test/edgenode"
)

// proxyAccount may do what kube-proxy does.
const proxyAccount = "node-proxy"

// proxyThroughLocalAPI points the node's kube-proxy at the agent, with a token of its own,
// and returns when services work.
func (s *site) proxyThroughLocalAPI(ctx context.Context) error {
	token, err := s.proxyToken(ctx)
	if err != nil {
		return err
	}
	// The authority on the disk, as kube-proxy may start before the agent.
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:7443", certificate-authority: /var/lib/rekindle/pki/ca.crt}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, token)
	if _, err := s.node.ExecInput(ctx, strings.NewReader(kubeconfig), "tee", "/var/lib/kube-proxy/kubeconfig"); err != nil {
		return err
	}
	if err := s.node.Systemctl(ctx, "restart", "kube-proxy.service"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		_, err := s.node.Exec(ctx, "curl", "-sf", "--max-time", "2", "-o", "/dev/null", "http://"+s.service+edgenode.ReadyPath)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("service %s does not answer on %s: %w", s.service, s.workload.node, err)
		case <-time.After(settlePoll):
		}
	}
}

func (s *site) proxyToken(ctx context.Context) (string, error) {
	meta := metav1.ObjectMeta{Name: proxyAccount, Namespace: metav1.NamespaceSystem}
	accounts := s.client.CoreV1().ServiceAccounts(meta.Namespace)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	_, err := s.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: proxyAccount},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-proxier"},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	token, err := accounts.CreateToken(ctx, meta.Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(24 * 60 * 60))},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return token.Status.Token, nil
}
