package mirror

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/internal/cloud"
)

var _ = Describe("The server behind the address", Ordered, func() {
	var (
		e        *edge
		other    *server
		backup   string
		expected []string
	)
	settings := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}}

	BeforeAll(func() {
		e = newEdge()
		other = newServer(e.authority)
		// The Node exists before the backup, the pods do not.
		backup = e.server.backup()
		Expect(e.admin.Create(ctx, settings.DeepCopy())).To(Succeed())
		for i := range 4 {
			name := fmt.Sprintf("web-%d", i)
			expected = append(expected, name)
			Expect(e.admin.Create(ctx, newPod(name, func(pod *corev1.Pod) {
				pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
			}))).To(Succeed())
		}
		e.start()
		Eventually(e.fresh).Should(Equal(v1alpha1.ReasonInStep))
		Expect(e.podNames()).To(Equal(expected))
		Eventually(e.has(core("configmaps"), namespace, "settings")).Should(BeTrue())
		Eventually(func() int { return len(e.store.Objects().Tokens()) }).Should(Equal(4))
	})

	nothingIsDropped := func(within time.Duration) {
		GinkgoHelper()
		Consistently(func(g Gomega) {
			g.Expect(e.podNames()).To(ContainElements(expected))
			g.Expect(e.has(core("configmaps"), namespace, "settings")()).To(BeTrue())
			g.Expect(len(e.store.Objects().Tokens())).To(BeNumerically(">=", 4))
		}, within).Should(Succeed())
	}

	It("is believed about a single pod that is deleted", func() {
		Expect(e.admin.Create(ctx, newPod("short"))).To(Succeed())
		Eventually(e.podNames).Should(ContainElement("short"))
		Expect(e.admin.Delete(ctx, newPod("short"), client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(e.podNames).Should(Equal(expected))
		Eventually(func() int { return len(e.store.Objects().Tokens()) }).Should(Equal(4))
	})

	It("may be restarted, and what has changed meanwhile arrives", func() {
		e.link.Down()
		e.server.stop()
		e.server.start()
		Expect(e.admin.Create(ctx, newPod("late"))).To(Succeed())
		e.link.Up(e.server.address())
		Eventually(e.podNames).Should(ContainElement("late"))
		Expect(e.admin.Delete(ctx, newPod("late"), client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(e.podNames).Should(Equal(expected))
	})

	It("may move to another address", func() {
		e.disconnect()
		e.link.Down()
		Expect(e.admin.Create(ctx, newPod("moved"))).To(Succeed())
		e.link = cloud.NewLink(e.server.address())
		e.config = e.user(e.link.Address, "system:node:"+nodeName, "system:nodes")
		e.connect(e.config)
		Eventually(e.podNames).Should(ContainElement("moved"))
		Expect(e.admin.Delete(ctx, newPod("moved"), client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(e.podNames).Should(Equal(expected))
	})

	It("may be swapped for an empty one: nothing is taken of it", func() {
		admin := e.adminOf(other)
		setUp(admin)
		Expect(admin.Create(ctx, newPod("strange"))).To(Succeed())
		e.link.Down()
		e.link.Up(other.address())
		Eventually(e.fresh).Should(Equal(v1alpha1.ReasonOtherCluster))
		nothingIsDropped(4 * time.Second)
		Expect(e.podNames()).To(Equal(expected))
	})

	It("is still not taken after the agent was restarted", func() {
		e.stop()
		e.start()
		Eventually(e.fresh).Should(Equal(v1alpha1.ReasonOtherCluster))
		nothingIsDropped(4 * time.Second)
		other.stop()
	})

	It("is the known one again", func() {
		e.link.Down()
		e.link.Up(e.server.address())
		Eventually(e.fresh).Should(Equal(v1alpha1.ReasonInStep))
		Expect(e.podNames()).To(Equal(expected))
	})

	It("may have been restored to before the pods existed: nothing is dropped, what is new is taken", func() {
		// Enough happens after the backup that the restored server is behind.
		for range 300 {
			changed := &corev1.ConfigMap{}
			Expect(e.admin.Get(ctx, client.ObjectKeyFromObject(&settings), changed)).To(Succeed())
			changed.Data = map[string]string{"n": changed.ResourceVersion}
			Expect(e.admin.Update(ctx, changed)).To(Succeed())
		}
		e.server.restore(backup)
		Eventually(e.fresh).Should(Equal(v1alpha1.ReasonPodListHeld))
		Expect(e.admin.Create(ctx, newPod("after"))).To(Succeed())
		Eventually(e.podNames).Should(ContainElement("after"))
		nothingIsDropped(quiet)
	})

	It("is still not believed after the agent was restarted", func() {
		e.stop()
		e.start()
		Eventually(e.fresh).Should(Equal(v1alpha1.ReasonPodListHeld))
		nothingIsDropped(quiet)
	})
})
