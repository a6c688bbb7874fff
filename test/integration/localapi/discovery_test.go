package localapi

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"rekindle.edge/agent/localapi/answer"
)

var _ = Describe("What the API server offers", Ordered, Serial, func() {
	It("is known while it is out of reach", func(ctx context.Context) {
		node := startHeld(identity)
		node.handler.Memory = node.objects
		discovering, stop := context.WithCancel(ctx)
		defer stop()
		go node.handler.Discover(discovering, node.server.Read)
		Eventually(func() int { return len(node.objects.Remembered("discovery")) }).WithTimeout(timeout).Should(Equal(3))

		want, err := discovery.NewDiscoveryClientForConfigOrDie(upstream.Admin()).ServerPreferredResources()
		Expect(err).NotTo(HaveOccurred())
		upstream.StopAPIServer()
		DeferCleanup(func(ctx context.Context) { Expect(upstream.StartAPIServer(ctx)).To(Succeed()) })
		Eventually(func() answer.Reach { reach, _ := node.server.Reach(); return reach }).WithTimeout(timeout).Should(Equal(answer.CutOff))
		client := discovery.NewDiscoveryClientForConfigOrDie(node.config)
		got, err := client.ServerPreferredResources()
		Expect(err).NotTo(HaveOccurred())
		Expect(offered(got)).To(Equal(offered(want)))
		version, err := client.ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(version.Major).To(Equal("1"))

		By("a client that asks step by step")
		client.UseLegacyDiscovery = true
		legacy, err := client.ServerPreferredResources()
		Expect(err).NotTo(HaveOccurred())
		Expect(offered(legacy)).To(Equal(offered(want)))
	})
})

// offered are the resources, in order, with what clients go by.
func offered(lists []*metav1.APIResourceList) []string {
	var all []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			all = append(all, fmt.Sprint(list.GroupVersion, " ", r.Name, " ", r.Kind, " ", r.Namespaced, " ", r.Verbs, " ", r.ShortNames))
		}
	}
	slices.Sort(all)
	return all
}
