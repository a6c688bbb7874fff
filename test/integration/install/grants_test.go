package install

import (
	"context"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
)

// grantNodesEverything binds all verbs on our kinds to all nodes, waits until that is in
// force for the given one, and takes it away after the specs.
func grantNodesEverything(node client.Client) {
	GinkgoHelper()
	grantEverything("Group", "system:nodes")
	Eventually(func(g Gomega) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: v1alpha1.GroupVersion.Group, Resource: "noderecoveries", Verb: "deletecollection"},
		}}
		g.Expect(node.Create(ctx, review)).To(Succeed())
		g.Expect(review.Status.Allowed).To(BeTrue())
	}, inForce).Should(Succeed())
}

// grantEverything binds all verbs on our kinds to a user or group until the spec is over.
func grantEverything(kind, name string) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "too-much-"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	Expect(admin.Create(ctx, role)).To(Succeed())
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}},
	}
	Expect(admin.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func() {
		Expect(admin.Delete(ctx, binding)).To(Succeed())
		Expect(admin.Delete(ctx, role)).To(Succeed())
	})
}

// get reads a path of the API server.
func get(config *rest.Config, path string) error {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return c.RESTClient().Verb(http.MethodGet).AbsPath(path).Do(context.Background()).Error()
}

var _ = DescribeTable("The roles for people", func(role, verb, resource string, allowed bool) {
	name := role + "-user"
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "people-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	}
	Expect(admin.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func() { Expect(admin.Delete(ctx, binding)).To(Succeed()) })

	resource, subresource, _ := strings.Cut(resource, "/")
	Eventually(func(g Gomega) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: name,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: v1alpha1.GroupVersion.Group, Resource: resource, Subresource: subresource, Verb: verb,
			},
		}}
		g.Expect(admin.Create(ctx, review)).To(Succeed())
		g.Expect(review.Status.Allowed).To(Equal(allowed))
	}, inForce).Should(Succeed())
},
	Entry("view reads policies", "rekindle-view", "list", "edgerecoverypolicies", true),
	Entry("view reads NodeRecoveries", "rekindle-view", "watch", "noderecoveries", true),
	Entry("view writes no policy", "rekindle-view", "update", "edgerecoverypolicies", false),
	Entry("edit writes policies", "rekindle-edit", "create", "edgerecoverypolicies", true),
	Entry("edit writes no status of a policy", "rekindle-edit", "update", "edgerecoverypolicies/status", false),
	Entry("edit writes no NodeRecovery", "rekindle-edit", "patch", "noderecoveries", false),
	Entry("edit deletes no NodeRecovery", "rekindle-edit", "delete", "noderecoveries", false),
)

var _ = Describe("The built-in roles", func() {
	// envtest has no controller manager, whose aggregation controller goes by these labels.
	It("take ours in by their labels", func() {
		for role, builtIn := range map[string][]string{
			"rekindle-view": {"view", "edit", "admin"},
			"rekindle-edit": {"edit", "admin"},
		} {
			ours := &rbacv1.ClusterRole{}
			Expect(admin.Get(ctx, client.ObjectKey{Name: role}, ours)).To(Succeed())
			for _, name := range []string{"view", "edit", "admin"} {
				theirs := &rbacv1.ClusterRole{}
				Expect(admin.Get(ctx, client.ObjectKey{Name: name}, theirs)).To(Succeed())
				Expect(takenIn(theirs, ours)).To(Equal(slices.Contains(builtIn, name)), "%s into %s", role, name)
			}
		}
	})
})

// takenIn says whether an aggregated role takes the other one in.
func takenIn(into, role *rbacv1.ClusterRole) bool {
	for _, s := range into.AggregationRule.ClusterRoleSelectors {
		if selector, err := metav1.LabelSelectorAsSelector(&s); err == nil && selector.Matches(labels.Set(role.Labels)) {
			return true
		}
	}
	return false
}
