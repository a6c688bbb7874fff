package api

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rekindle.edge/api/v1alpha1"
)

// setStatus creates a NodeRecovery and writes the given YAML as its status.
func setStatus(status string) error {
	Expect(create("NodeRecovery", "node", "spec: {policyName: p, policyGeneration: 1}")).To(Succeed())
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "NodeRecovery"})
	Expect(c.Get(ctx, client.ObjectKey{Name: "node"}, obj)).To(Succeed())
	fields := map[string]any{}
	Expect(yaml.Unmarshal([]byte(status), &fields)).To(Succeed(), status)
	obj.Object["status"] = fields
	return c.Status().Update(ctx, obj)
}

var _ = DescribeTable("a NodeRecovery spec that is refused", func(spec, field, message string) {
	err := create("NodeRecovery", "node", spec)
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "want Invalid, got %v", err)
	Expect(err.Error()).To(And(ContainSubstring(field), ContainSubstring(message)))
},
	Entry("no policy name", "spec: {policyGeneration: 1}", "spec.policyName", "Required value"),
	Entry("no policy generation", "spec: {policyName: p}", "spec.policyGeneration", "Required value"),
	Entry("a policy generation of 0", "spec: {policyName: p, policyGeneration: 0}", "spec.policyGeneration", "greater than or equal to 1"),
	Entry("a secret in the warm list", "spec: {policyName: p, policyGeneration: 1, cacheWarmup: {resources: [{resource: secrets}]}}", "spec.cacheWarmup.resources[0]", "secrets and configmaps"),
)

var _ = DescribeTable("a NodeRecovery status that is accepted", func(status string) {
	Expect(setStatus(status)).To(Succeed())
},
	Entry("empty", "{}"),
	Entry("five recoveries", "recoveries: "+times(5, "{bootID: b%d, expectedPods: 1, readyPods: 1, result: Complete, totalMilliseconds: 1, phases: {kernel: 0}}")),
	Entry("ten findings", "findings: "+times(10, "{reason: R%d, severity: Slows}")),
)

var _ = DescribeTable("a NodeRecovery status that is refused", func(status, field, message string) {
	err := setStatus(status)
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "want Invalid, got %v", err)
	Expect(err.Error()).To(And(ContainSubstring(field), ContainSubstring(message)))
},
	Entry("six recoveries", "recoveries: "+times(6, "{bootID: b%d}"), "status.recoveries", "at most 5"),
	Entry("a boot twice", "recoveries: [{bootID: a}, {bootID: a}]", "status.recoveries[1]", "Duplicate value"),
	Entry("a recovery without a boot id", "recoveries: [{result: Complete}]", "status.recoveries[0].bootID", "Required value"),
	Entry("a boot id that is none", "recoveries: [{bootID: "+strings.Repeat("x", 37)+"}]", "status.recoveries[0].bootID", "Too long"),
	Entry("six slow pods", "recoveries: [{bootID: a, slowestPods: "+times(6, "{pod: p%d}")+"}]", "slowestPods", "at most 5"),
	Entry("six held pods", "recoveries: [{bootID: a, heldPods: "+times(6, "{pod: p%d, reason: R}")+"}]", "heldPods", "at most 5"),
	Entry("an unknown result", "recoveries: [{bootID: a, result: Perhaps}]", "result", `"Complete", "Incomplete"`),
	Entry("an unknown end of the boot before", "recoveries: [{bootID: a, previousEnd: Fire}]", "previousEnd", `"Clean", "PowerLoss", "Unknown"`),
	Entry("an unknown connectivity", "recoveries: [{bootID: a, connectivityAtStart: Maybe}]", "connectivityAtStart", `"Online", "Offline"`),
	Entry("eleven findings", "findings: "+times(11, "{reason: R%d, severity: Slows}"), "status.findings", "at most 10"),
	Entry("an unknown severity", "findings: [{reason: R, severity: Bad}]", "severity", `"BlocksNode", "BlocksPod", "Slows"`),
	Entry("a message without bound", "findings: [{reason: R, severity: Slows, message: "+strings.Repeat("x", 257)+"}]", "message", "Too long"),
	Entry("eleven image problems", "images: {problems: "+times(11, "{image: i%d, reason: R}")+"}", "status.images.problems", "at most 10"),
	Entry("eleven missed resources", "missedResources: "+times(11, "{resource: r%d}"), "status.missedResources", "at most 10"),
)
