package install

import (
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("The manager's pods", func() {
	var deployment *appsv1.Deployment
	var pod *corev1.Pod

	BeforeEach(func() {
		deployment = &appsv1.Deployment{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: "rekindle-system", Name: "rekindle-manager"}, deployment)).To(Succeed())
		pod = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "rekindle-system", Name: "trial", Labels: deployment.Spec.Template.Labels},
			Spec:       deployment.Spec.Template.Spec,
		}
	})

	It("are admitted by a namespace that enforces the restricted standard", func() {
		namespace := &corev1.Namespace{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: "rekindle-system"}, namespace)).To(Succeed())
		Expect(namespace.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))
		Expect(admin.Create(ctx, pod, client.DryRunAll)).To(Succeed())
	})

	It("are refused there once they ask for more, so that the check above means something", func() {
		pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true)
		err := admin.Create(ctx, pod, client.DryRunAll)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring("allowPrivilegeEscalation"))
	})

	It("are two, ask for what they need, write to no disk, and are drained one at a time", func() {
		Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		container := deployment.Spec.Template.Spec.Containers[0]
		Expect(container.Resources.Requests).To(And(HaveKey(corev1.ResourceCPU), HaveKey(corev1.ResourceMemory)))
		Expect(container.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
		makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
		Expect(err).NotTo(HaveOccurred())
		version := regexp.MustCompile(`(?m)^VERSION\s*\?=\s*(\S+)$`).FindSubmatch(makefile)
		Expect(version).To(HaveLen(2))
		Expect(container.Image).To(Equal("rekindle-manager:"+string(version[1])), "the version that the Makefile builds")

		budget := &policyv1.PodDisruptionBudget{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(deployment), budget)).To(Succeed())
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		Expect(err).NotTo(HaveOccurred())
		Expect(selector.Matches(labels.Set(deployment.Spec.Template.Labels))).To(BeTrue())
	})
})
