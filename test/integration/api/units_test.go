package api

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("kubectl explain", func() {
	It("says the unit of every phase of a recovery, field by field", func() {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		Expect(c.Get(ctx, client.ObjectKey{Name: "noderecoveries.rekindle.edge"}, crd)).To(Succeed())
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		Expect(err).NotTo(HaveOccurred())
		Expect(versions).To(HaveLen(1))
		phases, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties",
			"status", "properties", "recoveries", "items", "properties", "phases", "properties")
		Expect(err).NotTo(HaveOccurred())
		Expect(phases).To(HaveLen(8))
		for name, phase := range phases {
			Expect(phase).To(HaveKeyWithValue("description", ContainSubstring("milliseconds")), name)
		}
	})
})
