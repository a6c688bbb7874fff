package cluster_test

import (
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/internal/lab"
)

var _ = Describe("A cluster", func() {
	It("lets a node be itself and nobody else", func(ctx SpecContext) {
		c := start(ctx, false)
		config, err := c.Node("left")
		Expect(err).NotTo(HaveOccurred())
		node := clientset(config)

		_, err = createNode(ctx, node, "left")
		Expect(err).NotTo(HaveOccurred())
		_, err = createNode(ctx, node, "right")
		Expect(err).To(Satisfy(apierrors.IsForbidden))
		_, err = node.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))
		_, err = createNode(ctx, clientset(c.Admin()), "right")
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(startTimeout))

	It("keeps its objects while the API server is away, and refuses connections meanwhile", func(ctx SpecContext) {
		c := start(ctx, false)
		admin := clientset(c.Admin())
		_, err := createNode(ctx, admin, "kept")
		Expect(err).NotTo(HaveOccurred())

		c.StopAPIServer()
		_, err = admin.CoreV1().Nodes().Get(ctx, "kept", metav1.GetOptions{})
		Expect(err).To(MatchError(ContainSubstring("connection refused")))

		Expect(c.StartAPIServer(ctx)).To(Succeed())
		_, err = admin.CoreV1().Nodes().Get(ctx, "kept", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(startTimeout))

	It("serves beside another one, to kubectl too, and leaves nothing behind", func(ctx SpecContext) {
		one, two := start(ctx, true), start(ctx, true)
		Expect(one.Admin().Host).NotTo(Equal(two.Admin().Host))
		for _, c := range []*cluster.Cluster{one, two} {
			kubectl := exec.CommandContext(ctx, filepath.Join(c.Tools(), "kubectl"), "--kubeconfig", c.AdminKubeconfig(),
				"get", "serviceaccount", "default", "-o", "name")
			Expect(kubectl.Output()).To(BeEquivalentTo("serviceaccount/default\n"))
		}

		number, dir := one.Lab().Number, one.Lab().Dir
		Expect(one.Stop()).To(Succeed())
		Eventually(lab.Leftovers).WithContext(ctx).WithArguments(number, dir).WithTimeout(5 * time.Second).Should(BeEmpty())
		_, err := clientset(two.Admin()).CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred(), "the other cluster must not notice")
	}, SpecTimeout(startTimeout))
})

func createNode(ctx SpecContext, client kubernetes.Interface, name string) (*corev1.Node, error) {
	return client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
}
