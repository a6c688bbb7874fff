package readiness

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

const (
	answered   outcome = "answered"
	unanswered outcome = "not answered"

	// Resources that a client on the node asks for while it is cut off.
	kept, notKept = "ingressclasses.networking.k8s.io", "priorityclasses.scheduling.k8s.io"

	warmList = `, cacheWarmup: {resources: [{group: networking.k8s.io, resource: ingressclasses}]}`
	warmRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: warm-ingressclasses, labels: {rekindle.edge/aggregate-to-node: "true"}}
rules: [{apiGroups: [networking.k8s.io], resources: [ingressclasses], verbs: [get, list, watch]}]
`
)

// paths of what is asked for.
var asked = map[string]string{kept: "/apis/networking.k8s.io/v1/ingressclasses", notKept: "/apis/scheduling.k8s.io/v1/priorityclasses"}

// judgeMissed asks for a resource on the warm list, and for another, while the node is cut
// off, reads the verdict when the link is back, and asks again after a restart.
func judgeMissed(ctx context.Context) []line {
	GinkgoHelper()
	lines := []line{
		{row: row{name: "resource-on-the-warm-list", want: answered}},
		{row: row{name: "resource-not-on-it", reason: v1alpha1.ReasonResourceMissed, want: unanswered}},
	}
	resources := []string{kept, notKept}
	applyText(ctx, warmRole)
	fresh(ctx, installed, nil)
	setPolicy(ctx, targetOfTwo, warmList)
	Eventually(ctx, answers).WithArguments(ctx, kept).WithTimeout(soon).WithPolling(poll).Should(BeTrue(), journal)
	time.Sleep(batch)
	Expect(node.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
	// A request that is under way when the link goes is not one that was missed.
	Eventually(ctx, ask).WithArguments(ctx, notKept).WithTimeout(soon).WithPolling(time.Second).Should(ContainSubstring("cacheWarmup"))
	Expect(answers(ctx, kept)).To(BeTrue())
	Expect(node.RestoreWAN(ctx)).To(Succeed())
	Eventually(ctx, func() []string { return missed(ctx) }).WithTimeout(2*flip).WithPolling(poll).ShouldNot(BeEmpty(), journal)
	says := missed(ctx)
	for i, resource := range resources {
		if slices.Contains(says, resource) {
			lines[i].said = []string{v1alpha1.ReasonResourceMissed}
		}
	}
	cutOff(ctx)
	Eventually(ctx, func() error {
		_, err := node.Exec(ctx, "test", "-e", "/run/rekindle/kubelet.env")
		return err
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
	for i, resource := range resources {
		lines[i].came = unanswered
		if answers(ctx, resource) {
			lines[i].came = answered
		}
	}
	return lines
}

// missed are the objects of findings about resources that were missed.
func missed(ctx context.Context) []string {
	GinkgoHelper()
	var objects []string
	for _, finding := range verdict(ctx).Findings {
		if finding.Reason == v1alpha1.ReasonResourceMissed {
			objects = append(objects, finding.Object)
		}
	}
	return objects
}

// answers says whether the local API answers a client of the node that asks for a resource.
func answers(ctx context.Context, resource string) bool { return ask(ctx, resource) == "" }

// ask is what goes wrong when a client of the node asks the local API for a resource.
func ask(ctx context.Context, resource string) string {
	_, err := node.Exec(ctx, "timeout", "10", "kubectl", "--server=https://127.0.0.1:7443", "--certificate-authority=/run/rekindle/pki/ca.crt",
		"--client-certificate="+pki+"kubelet-client-current.pem", "--client-key="+pki+"kubelet-client-current.pem", "get", "--raw", asked[resource])
	if err != nil {
		return err.Error()
	}
	return ""
}
