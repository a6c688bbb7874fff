package edgenode_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/test/edgenode"
)

var _ = Describe("Two nodes side by side", func() {
	It("share the cluster and no fate", func(ctx SpecContext) {
		labels := map[string]string{"apps.openyurt.io/nodepool": "store"}
		left, leftBoot := firstBoot(ctx, edgenode.Options{Name: "left", Labels: labels, KubeProxy: true})
		right, rightBoot := firstBoot(ctx, edgenode.Options{Name: "right", Labels: labels})
		Expect(leftBoot.ID).NotTo(Equal(rightBoot.ID))
		Expect(left.IP()).NotTo(Equal(right.IP()))

		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "apps.openyurt.io/nodepool=store"})
		Expect(err).NotTo(HaveOccurred())
		Expect(nodes.Items).To(HaveLen(2))

		By("reaching the API server by its Service on the node with kube-proxy")
		service, err := client.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		dial := fmt.Sprintf(": </dev/tcp/%s/443", service.Spec.ClusterIP)
		Eventually(func() error {
			_, err := left.Exec(ctx, "timeout", "2", "bash", "-c", dial)
			return err
		}).WithContext(ctx).WithPolling(poll).Should(Succeed())

		By("cutting one off and taking its power")
		Expect(left.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
		Expect(connect(ctx, right)).To(Equal("connected"))
		Expect(left.PowerCut(ctx)).To(Succeed())
		Expect(right.WaitReady(ctx)).To(Succeed())
		expectIdentity(ctx, right, rightBoot)
	}, SpecTimeout(startTimeout))
})
