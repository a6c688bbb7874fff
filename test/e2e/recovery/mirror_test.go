package recovery

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// onDisk opens a copy of the store that a node without power has on its disk. What is
// encrypted stays so: the key is sealed to the node.
func onDisk(ctx context.Context) *snapshot.Objects {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(edge.EditDisk(ctx, func(root string) error {
		return os.CopyFS(dir, os.DirFS(filepath.Join(root, "var/lib/rekindle")))
	})).To(Succeed())
	store, err := snapshot.Open(dir, GinkgoLogr)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(store.Close)
	return store.Objects()
}

func freshness(ctx context.Context) func() string {
	return func() string {
		nrec, err := product.NodeRecovery(ctx, node)
		if err != nil {
			return err.Error()
		}
		if fresh := meta.FindStatusCondition(nrec.Status.Conditions, v1alpha1.ConditionSnapshotFresh); fresh != nil {
			return fresh.Reason
		}
		return ""
	}
}

var _ = Describe("The snapshot", func() {
	It("has on the disk, when the power is cut, all that the node's pods need", func(ctx SpecContext) {
		Eventually(freshness(ctx)).WithTimeout(time.Minute).Should(Equal(v1alpha1.ReasonInStep))
		Eventually(func(g Gomega) {
			nrec, err := product.NodeRecovery(ctx, node)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(nrec.Status.Findings).NotTo(ContainElement(HaveField("Reason", BeElementOf(
				v1alpha1.ReasonReadRefused, v1alpha1.ReasonNotMirrored, v1alpha1.ReasonObjectMissing, v1alpha1.ReasonTokenMissing,
			))))
			g.Expect(nrec.Status.Snapshot.Objects).To(BeNumerically(">=", pods))
		}).WithTimeout(time.Minute).Should(Succeed())
		var all corev1.PodList
		Expect(product.Client.List(ctx, &all, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{"spec.nodeName": node})).To(Succeed())
		Expect(len(all.Items)).To(BeNumerically(">=", pods))

		settle()
		Expect(edge.PowerCut(ctx)).To(Succeed())
		objects := onDisk(ctx)
		trusted, reason := objects.Trusted()
		Expect(trusted).To(BeTrue(), reason)
		for _, pod := range all.Items {
			kept, ok := objects.Get(snapshot.Pods, pod.Namespace, pod.Name)
			Expect(ok).To(BeTrue(), pod.Name)
			Expect(kept.UID).To(Equal(pod.UID))
		}
		for resource, scope := range map[string]snapshot.Scope{
			"configmaps": {Resource: snapshot.Secrets.GroupVersion().WithResource("configmaps"), Namespace: metav1.NamespaceDefault, Name: "kube-root-ca.crt"},
			"nodes":      {Resource: snapshot.Nodes, Name: node},
			"services":   {Resource: snapshot.Nodes.GroupVersion().WithResource("services"), Namespace: metav1.NamespaceDefault, Name: "kubernetes"},
		} {
			_, ok := objects.Get(scope.Resource, scope.Namespace, scope.Name)
			Expect(ok).To(BeTrue(), resource)
		}
		keys, issuer := mirror.IssuerKeys(objects)
		Expect(keys).NotTo(BeNil())
		Expect(issuer).NotTo(BeEmpty())

		_, err := edge.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(product.WaitPodsReady(ctx, node, pods, 2*time.Minute)).To(Succeed())
		Eventually(freshness(ctx)).WithTimeout(time.Minute).Should(Equal(v1alpha1.ReasonInStep))
	})
})
