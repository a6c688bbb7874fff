package install

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("kubectl apply -k config/default", Ordered, func() {
	versions := func() string {
		GinkgoHelper()
		return kubectl("get", "-k", filepath.Join(root, "config", "default"),
			"-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
	}
	applyAgain := func() {
		GinkgoHelper()
		before := versions()
		printed := kubectl("apply", "-k", filepath.Join(root, "config", "default"))
		Expect(versions()).To(Equal(before))
		for line := range strings.Lines(printed) {
			// kubectl sends the selector of a PodDisruptionBudget every time, changed or not
			// (its patch strategy is "replace"), and calls that configured.
			if !strings.HasPrefix(line, "poddisruptionbudget") {
				Expect(strings.TrimSpace(line)).To(HaveSuffix(" unchanged"))
			}
		}
	}

	It("creates everything on an empty cluster", func() {
		lines := strings.Split(strings.TrimSpace(firstApply), "\n")
		Expect(len(lines)).To(BeNumerically(">", 15))
		Expect(lines).To(HaveEach(HaveSuffix(" created")))
	})

	It("changes nothing when it is applied again", applyAgain)

	It("leaves the rights for warm lists alone that the controller manager has filled in", func() {
		role := &rbacv1.ClusterRole{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: "rekindle-node-warm-resources"}, role)).To(Succeed())
		Expect(role.Rules).To(BeEmpty())
		// What its clusterrole-aggregation controller writes.
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}}
		Expect(admin.Update(ctx, role)).To(Succeed())
		applyAgain()
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
		Expect(role.Rules).To(HaveLen(1))
	})

	It("explains fields, and what unset means", func() {
		Expect(kubectl("explain", "erp.spec.startupOrdering.stages.maxParallel")).To(ContainSubstring("Unset: as many as suits"))
		Expect(kubectl("explain", "nrec.status.recoveries.totalMilliseconds")).To(ContainSubstring("Unset: the recovery did not complete"))
	})

	It("has samples that the API server accepts as they are", func() {
		printed := kubectl("apply", "--dry-run=server", "-k", filepath.Join(root, "config", "samples"))
		Expect(strings.Split(strings.TrimSpace(printed), "\n")).To(HaveEach(HaveSuffix("created (server dry run)")))
	})
})
