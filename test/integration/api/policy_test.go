package api

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"rekindle.edge/api/v1alpha1"
)

// create sends a policy whose spec is the given YAML, exactly as a user would: no Go type
// drops or defaults a field on the way.
func create(kind, name, spec string) error {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	Expect(yaml.Unmarshal([]byte(spec), &obj.Object)).To(Succeed(), spec)
	obj.SetAPIVersion(v1alpha1.GroupVersion.String())
	obj.SetKind(kind)
	obj.SetName(name)
	err := c.Create(ctx, obj)
	if err == nil {
		DeferCleanup(func() { Expect(client.IgnoreNotFound(c.Delete(ctx, obj))).To(Succeed()) })
	}
	return err
}

func accepts(spec string) {
	GinkgoHelper()
	Expect(create("EdgeRecoveryPolicy", "policy", spec)).To(Succeed())
}

func rejects(spec, field, message string) {
	GinkgoHelper()
	err := create("EdgeRecoveryPolicy", "policy", spec)
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "want Invalid, got %v", err)
	Expect(err.Error()).To(And(ContainSubstring(field), ContainSubstring(message)))
}

// with puts lines below the spec of a policy that is valid by itself.
func with(lines ...string) string {
	return "spec:\n  nodeSelector: {}\n  " + strings.Join(lines, "\n  ") + "\n"
}

// times repeats a format with the numbers 0 to n-1 as the items of a YAML flow list.
func times(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

const someStage = `{name: s%d, pods: [{labelSelector: {}}]}`

var _ = DescribeTable("a policy that is accepted", accepts,
	Entry("by node selector", "spec: {nodeSelector: {matchLabels: {a: b}}}"),
	Entry("by the selector that selects every node", "spec: {nodeSelector: {}}"),
	Entry("by a node selector with every operator", "spec: {nodeSelector: {matchExpressions: [{key: a, operator: In, values: [b, c]}, {key: d, operator: NotIn, values: [e]}, {key: f, operator: Exists}, {key: g, operator: DoesNotExist, values: []}]}}"),
	Entry("by pools, one with a target of its own", "spec: {nodePools: [{name: a}, {name: b, target: {recoverySeconds: 10}}]}"),
	Entry("with 64 pools", "spec: {nodePools: "+times(64, "{name: p%d}")+"}"),
	Entry("in Observe mode", with("mode: Observe")),
	Entry("of the highest priority", with("priority: 1000")),
	Entry("with the longest target", with("target: {recoverySeconds: 3600}")),
	Entry("with a pool label key without prefix", with("nodePoolLabelKey: pool")),
	Entry("with 16 stages", with("startupOrdering: {stages: "+times(16, someStage)+"}")),
	Entry("with a stage of static pods", with("startupOrdering: {stages: [{name: a, pods: [{source: Static}]}]}")),
	Entry("with the extreme timeouts", with("startupOrdering: {stages: [{name: a, timeoutSeconds: 1, pods: [{namespaces: [x]}]}, {name: b, timeoutSeconds: 600, maxParallel: 1, waitFor: Started, pods: [{priorityClassNames: [system-node-critical]}]}]}")),
	Entry("with warm resources", with("cacheWarmup: {resources: [{resource: nodes}, {group: example.com, resource: widgets, namespaces: [a], labelSelector: {matchLabels: {tier: edge}}}]}")),
	Entry("with a resource called secrets of another group", with("cacheWarmup: {resources: [{group: example.com, resource: secrets}]}")),
	Entry("with image references of every form", with(`cacheWarmup: {images: {maxSize: 10Gi, extra: [nginx, "nginx:1.27", library/nginx, "registry.example.com:5000/team/app_x:v1-rc.2", "[fd00::1]:5000/app", "localhost/a--b@sha256:`+strings.Repeat("a", 64)+`"]}}`)),
	Entry("with a size written as a number", with("cacheWarmup: {images: {maxSize: 1048576}, pageCache: {mode: Enabled, maxSize: 1Mi}}")),
	Entry("with node files below every allowed root", with("snapshot: {nodeFiles: [/run/flannel/subnet.env, /etc/cni/net.d/10-flannel.conflist, /var/lib/cni/results/x]}")),
	Entry("with the extreme snapshot settings", with("snapshot: {maxStalenessSeconds: 86400, retainGenerations: 5, serviceAccountTokens: Omit}")),
	Entry("without a freshness wait", with("offline: {freshnessWaitMilliseconds: 0, imagePullPolicy: AsWritten, readinessProbes: AsWritten, attachedVolumes: Start}")),
)

var _ = DescribeTable("a policy that is refused, by field and cure", rejects,
	Entry("neither selector nor pools", "spec: {mode: Enforce}", "spec", "exactly one of nodeSelector and nodePools"),
	Entry("both selector and pools", "spec: {nodeSelector: {}, nodePools: [{name: a}]}", "spec", "exactly one of nodeSelector and nodePools"),
	Entry("an operator that there is not", "spec: {nodeSelector: {matchExpressions: [{key: a, operator: Exists}, {key: a, operator: Foo}]}}", "spec.nodeSelector", "must be In, NotIn, Exists or DoesNotExist"),
	Entry("an operator In without values", "spec: {nodeSelector: {matchExpressions: [{key: a, operator: In}]}}", "spec.nodeSelector", "In and NotIn need values"),
	Entry("an operator NotIn with an empty list of values", "spec: {nodeSelector: {matchExpressions: [{key: a, operator: NotIn, values: []}]}}", "spec.nodeSelector", "In and NotIn need values"),
	Entry("an operator Exists with values", "spec: {nodeSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}", "spec.nodeSelector", "Exists and DoesNotExist take none"),
	Entry("an empty list of pools", "spec: {nodePools: []}", "spec.nodePools", "at least 1"),
	Entry("a pool named twice", "spec: {nodePools: [{name: a}, {name: a}]}", "spec.nodePools[1]", "Duplicate value"),
	Entry("65 pools", "spec: {nodePools: "+times(65, "{name: p%d}")+"}", "spec.nodePools", "at most 64"),
	Entry("a pool name that is no label value", `spec: {nodePools: [{name: "a/b"}]}`, "spec.nodePools[0].name", "should match"),
	Entry("a pool label key that is no label key", with(`nodePoolLabelKey: "a b"`), "spec.nodePoolLabelKey", "should match"),
	Entry("an unknown mode", with("mode: Maybe"), "spec.mode", `"Enforce", "Observe"`),
	Entry("a negative priority", with("priority: -1"), "spec.priority", "greater than or equal to 0"),
	Entry("a priority above 1000", with("priority: 1001"), "spec.priority", "less than or equal to 1000"),
	Entry("a target of 0 s", with("target: {recoverySeconds: 0}"), "spec.target.recoverySeconds", "greater than or equal to 1"),
	Entry("a target above an hour", with("target: {recoverySeconds: 3601}"), "spec.target.recoverySeconds", "less than or equal to 3600"),
	Entry("a pool's target of 0 s", "spec: {nodePools: [{name: a, target: {recoverySeconds: 0}}]}", "spec.nodePools[0].target.recoverySeconds", "greater than or equal to 1"),

	Entry("a stage named twice", with("startupOrdering: {stages: [{name: a, pods: [{source: Static}]}, {name: a, pods: [{source: Static}]}]}"), "spec.startupOrdering.stages[1]", "Duplicate value"),
	Entry("a stage without a name", with("startupOrdering: {stages: [{pods: [{source: Static}]}]}"), "spec.startupOrdering.stages[0].name", "Required value"),
	Entry("a stage name in capitals", with("startupOrdering: {stages: [{name: A, pods: [{source: Static}]}]}"), "spec.startupOrdering.stages[0].name", "should match"),
	Entry("a stage without pods", with("startupOrdering: {stages: [{name: a, pods: []}]}"), "spec.startupOrdering.stages[0].pods", "at least 1"),
	Entry("a stage that selects nothing", with("startupOrdering: {stages: [{name: a, pods: [{}]}]}"), "spec.startupOrdering.stages[0].pods[0]", "selects nothing"),
	Entry("a stage that says Any and no more", with("startupOrdering: {stages: [{name: a, pods: [{source: Any}]}]}"), "spec.startupOrdering.stages[0].pods[0]", "selects nothing"),
	Entry("a stage with an empty list of namespaces", with("startupOrdering: {stages: [{name: a, pods: [{namespaces: []}]}]}"), "spec.startupOrdering.stages[0].pods[0].namespaces", "at least 1"),
	Entry("nine selectors in a stage", with("startupOrdering: {stages: [{name: a, pods: "+times(9, "{namespaces: [n%d]}")+"}]}"), "spec.startupOrdering.stages[0].pods", "at most 8"),
	Entry("17 stages", with("startupOrdering: {stages: "+times(17, someStage)+"}"), "spec.startupOrdering.stages", "at most 16"),
	Entry("a stage timeout of 0 s", with("startupOrdering: {stages: [{name: a, timeoutSeconds: 0, pods: [{source: Static}]}]}"), "timeoutSeconds", "greater than or equal to 1"),
	Entry("a stage timeout above 600 s", with("startupOrdering: {stages: [{name: a, timeoutSeconds: 601, pods: [{source: Static}]}]}"), "timeoutSeconds", "less than or equal to 600"),
	Entry("a stage of which none may start", with("startupOrdering: {stages: [{name: a, maxParallel: 0, pods: [{source: Static}]}]}"), "maxParallel", "greater than or equal to 1"),
	Entry("an unknown state to wait for", with("startupOrdering: {stages: [{name: a, waitFor: Done, pods: [{source: Static}]}]}"), "waitFor", `"Started", "Ready"`),

	Entry("secrets in the warm list", with("cacheWarmup: {resources: [{resource: secrets}]}"), "spec.cacheWarmup.resources[0]", "secrets and configmaps are mirrored only"),
	Entry("configmaps in the warm list", with(`cacheWarmup: {resources: [{group: "", resource: configmaps}]}`), "spec.cacheWarmup.resources[0]", "secrets and configmaps are mirrored only"),
	Entry("leases in the warm list", with("cacheWarmup: {resources: [{group: coordination.k8s.io, resource: leases}]}"), "spec.cacheWarmup.resources[0]", "leases are never mirrored"),
	Entry("a subresource in the warm list", with("cacheWarmup: {resources: [{resource: serviceaccounts/token}]}"), "spec.cacheWarmup.resources[0].resource", "should match"),
	Entry("a kind instead of a resource", with("cacheWarmup: {resources: [{resource: Service}]}"), "spec.cacheWarmup.resources[0].resource", "should match"),
	Entry("every resource", with(`cacheWarmup: {resources: [{group: "*", resource: "*"}]}`), "spec.cacheWarmup.resources[0]", "should match"),
	Entry("a warm resource twice", with("cacheWarmup: {resources: [{resource: services}, {resource: services}]}"), "spec.cacheWarmup.resources[1]", "Duplicate value"),
	Entry("33 warm resources", with("cacheWarmup: {resources: "+times(33, "{resource: r%d}")+"}"), "spec.cacheWarmup.resources", "at most 32"),
	Entry("17 namespaces of a warm resource", with("cacheWarmup: {resources: [{resource: services, namespaces: "+times(17, "n%d")+"}]}"), "namespaces", "at most 16"),

	Entry("an image reference with spaces", with(`cacheWarmup: {images: {extra: ["nginx latest"]}}`), "spec.cacheWarmup.images.extra[0]", "should match"),
	Entry("an image reference in capitals", with(`cacheWarmup: {images: {extra: [Nginx]}}`), "spec.cacheWarmup.images.extra[0]", "should match"),
	Entry("an image reference with a scheme", with(`cacheWarmup: {images: {extra: ["https://example.com/nginx"]}}`), "spec.cacheWarmup.images.extra[0]", "should match"),
	Entry("an image reference with an empty tag", with(`cacheWarmup: {images: {extra: ["nginx:"]}}`), "spec.cacheWarmup.images.extra[0]", "should match"),
	Entry("an image reference with a short digest", with(`cacheWarmup: {images: {extra: ["nginx@sha256:abc"]}}`), "spec.cacheWarmup.images.extra[0]", "should match"),
	Entry("an image twice", with("cacheWarmup: {images: {extra: [nginx, nginx]}}"), "spec.cacheWarmup.images.extra[1]", "Duplicate value"),
	Entry("65 images", with("cacheWarmup: {images: {extra: "+times(65, "i%d")+"}}"), "spec.cacheWarmup.images.extra", "at most 64"),
	Entry("an image budget of nothing", with(`cacheWarmup: {images: {maxSize: "0"}}`), "spec.cacheWarmup.images.maxSize", "greater than 0"),
	Entry("a negative image budget", with("cacheWarmup: {images: {maxSize: -1Gi}}"), "spec.cacheWarmup.images.maxSize", "greater than 0"),
	Entry("an image budget that is no quantity", with("cacheWarmup: {images: {maxSize: plenty}}"), "spec.cacheWarmup.images.maxSize", "should match"),
	Entry("a page cache budget of nothing", with("cacheWarmup: {pageCache: {maxSize: 0}}"), "spec.cacheWarmup.pageCache.maxSize", "greater than 0"),

	Entry("a node file outside the allowed roots", with("snapshot: {nodeFiles: [/etc/shadow]}"), "spec.snapshot.nodeFiles[0]", "should match"),
	Entry("a node file that climbs out", with("snapshot: {nodeFiles: [/run/../etc/shadow]}"), "spec.snapshot.nodeFiles[0]", "should match"),
	Entry("a node file by a relative path", with("snapshot: {nodeFiles: [run/flannel/subnet.env]}"), "spec.snapshot.nodeFiles[0]", "should match"),
	Entry("a root itself", with("snapshot: {nodeFiles: [/run/]}"), "spec.snapshot.nodeFiles[0]", "should match"),
	Entry("a path that only begins like a root", with("snapshot: {nodeFiles: [/runner/x]}"), "spec.snapshot.nodeFiles[0]", "should match"),
	Entry("a file of our own", with("snapshot: {nodeFiles: [/run/rekindle/cri.sock]}"), "spec.snapshot.nodeFiles[0]", "not kept"),
	Entry("a unit of systemd's", with("snapshot: {nodeFiles: [/run/systemd/system/x.service]}"), "spec.snapshot.nodeFiles[0]", "not kept"),
	Entry("17 node files", with("snapshot: {nodeFiles: "+times(17, "/run/f%d")+"}"), "spec.snapshot.nodeFiles", "at most 16"),
	Entry("a staleness below 10 s", with("snapshot: {maxStalenessSeconds: 9}"), "spec.snapshot.maxStalenessSeconds", "greater than or equal to 10"),
	Entry("a staleness above a day", with("snapshot: {maxStalenessSeconds: 86401}"), "spec.snapshot.maxStalenessSeconds", "less than or equal to 86400"),
	Entry("no generation kept", with("snapshot: {retainGenerations: 0}"), "spec.snapshot.retainGenerations", "greater than or equal to 1"),
	Entry("six generations", with("snapshot: {retainGenerations: 6}"), "spec.snapshot.retainGenerations", "less than or equal to 5"),
	Entry("an unknown token policy", with("snapshot: {serviceAccountTokens: Maybe}"), "spec.snapshot.serviceAccountTokens", `"Replay", "Omit"`),
	Entry("an unknown image pull policy", with("offline: {imagePullPolicy: Always}"), "spec.offline.imagePullPolicy", `"UseLocal", "AsWritten"`),
	Entry("an unknown probe setting", with("offline: {readinessProbes: Slow}"), "spec.offline.readinessProbes", `"Fast", "AsWritten"`),
	Entry("an unknown volume setting", with("offline: {attachedVolumes: Maybe}"), "spec.offline.attachedVolumes", `"Hold", "Start"`),
	Entry("a negative freshness wait", with("offline: {freshnessWaitMilliseconds: -1}"), "spec.offline.freshnessWaitMilliseconds", "greater than or equal to 0"),
	Entry("a freshness wait above 10 s", with("offline: {freshnessWaitMilliseconds: 10001}"), "spec.offline.freshnessWaitMilliseconds", "less than or equal to 10000"),
)

var _ = Describe("Defaults", func() {
	It("fills a policy that says only which nodes it is for", func() {
		accepts("spec: {nodeSelector: {}}")
		var got v1alpha1.EdgeRecoveryPolicy
		Expect(c.Get(ctx, client.ObjectKey{Name: "policy"}, &got)).To(Succeed())

		Expect(got.Spec.CacheWarmup.PageCache.MaxSize.String()).To(Equal("512Mi"))
		got.Spec.CacheWarmup.PageCache.MaxSize = nil
		Expect(got.Spec).To(Equal(v1alpha1.EdgeRecoveryPolicySpec{
			Mode:             v1alpha1.ModeEnforce,
			NodeSelector:     &metav1.LabelSelector{},
			NodePoolLabelKey: v1alpha1.DefaultNodePoolLabelKey,
			Target:           v1alpha1.RecoveryTarget{RecoverySeconds: 30},
			CacheWarmup: v1alpha1.CacheWarmup{
				Images:    v1alpha1.WarmImages{FromWorkloads: v1alpha1.ToggleEnabled, Pinning: v1alpha1.ToggleEnabled},
				PageCache: v1alpha1.PageCache{Mode: v1alpha1.ToggleDisabled},
			},
			Snapshot: v1alpha1.Snapshot{MaxStalenessSeconds: 300, RetainGenerations: 2, ServiceAccountTokens: v1alpha1.TokensReplay},
			Offline: v1alpha1.Offline{
				ImagePullPolicy:           v1alpha1.ImagePullUseLocal,
				ReadinessProbes:           v1alpha1.ReadinessProbesFast,
				AttachedVolumes:           v1alpha1.AttachedVolumesHold,
				FreshnessWaitMilliseconds: ptr.To[int32](1000),
			},
		}))
	})

	It("fills a stage that says only its name and pods", func() {
		accepts(with("startupOrdering: {stages: [{name: a, pods: [{namespaces: [x]}]}]}"))
		var got v1alpha1.EdgeRecoveryPolicy
		Expect(c.Get(ctx, client.ObjectKey{Name: "policy"}, &got)).To(Succeed())
		Expect(got.Spec.StartupOrdering.Stages).To(Equal([]v1alpha1.Stage{{
			Name:           "a",
			Pods:           []v1alpha1.PodSelector{{Namespaces: []string{"x"}, Source: v1alpha1.PodSourceAny}},
			WaitFor:        v1alpha1.WaitForReady,
			TimeoutSeconds: 60,
		}}))
	})

	It("keeps a zero that the user wrote", func() {
		accepts(with("offline: {freshnessWaitMilliseconds: 0}"))
		var got v1alpha1.EdgeRecoveryPolicy
		Expect(c.Get(ctx, client.ObjectKey{Name: "policy"}, &got)).To(Succeed())
		Expect(got.Spec.Offline.FreshnessWaitMilliseconds).To(Equal(ptr.To[int32](0)))
	})
})
