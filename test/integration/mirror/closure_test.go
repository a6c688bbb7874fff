package mirror

import (
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

var _ = Describe("What a node mirrors with its own rights", Ordered, func() {
	var e *edge
	var app *corev1.Pod

	create := func(objects ...client.Object) {
		GinkgoHelper()
		for _, object := range objects {
			Expect(e.admin.Create(ctx, object)).To(Succeed())
		}
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

	BeforeAll(func() {
		e = newEdge()
		create(
			&corev1.Secret{ObjectMeta: named("volume"), Data: map[string][]byte{"k": []byte("v")}},
			&corev1.Secret{ObjectMeta: named("init-env")}, &corev1.Secret{ObjectMeta: named("pull")}, &corev1.Secret{ObjectMeta: named("not-ours")},
			&corev1.Secret{ObjectMeta: named("stage")}, &corev1.ConfigMap{ObjectMeta: named("env")}, &corev1.ConfigMap{ObjectMeta: named("projected")},
			&corev1.ConfigMap{ObjectMeta: named("not-ours")},
			&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)}},
			&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: nodeName}},
			&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata"},
			&discoveryv1.EndpointSlice{ObjectMeta: named("slice"), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{}},
			&corev1.Service{ObjectMeta: named("shop"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
			&corev1.PersistentVolumeClaim{ObjectMeta: named("data"), Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "pv-1", StorageClassName: ptr.To(""),
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("1Gi")}}}},
			&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}, Spec: corev1.PersistentVolumeSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("1Gi")},
				ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: "data"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: "disk.example.com", VolumeHandle: "vol-1", NodeStageSecretRef: &corev1.SecretReference{Namespace: namespace, Name: "stage"}}}}},
			&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachment}, Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "disk.example.com", NodeName: nodeName, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv-1")}}},
		)
		app = newPod("app", func(pod *corev1.Pod) {
			pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{local("pull")}
			pod.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "web", Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("init-env"), Key: "k", Optional: ptr.To(true)}}}}}}
			pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("env")}}}
			pod.Spec.Volumes = []corev1.Volume{
				{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume"}}},
				{Name: "optional", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "absent", Optional: ptr.To(true)}}},
				{Name: "p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("projected")}},
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", ExpirationSeconds: ptr.To[int64](7200), Path: "vault"}},
				}}}},
				{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			}
		})
		create(app)
		e.start()
	})

	It("is in step with all that kubelet reads", func() {
		Eventually(e.fresh).Should(Equal(v1alpha1.ReasonInStep))
		for _, want := range []struct {
			group, version, resource, namespace, name string
		}{
			{"", "v1", "pods", namespace, "app"}, {"", "v1", "nodes", "", nodeName}, {"", "v1", "services", namespace, "shop"},
			{"storage.k8s.io", "v1", "csidrivers", "", "disk.example.com"}, {"node.k8s.io", "v1", "runtimeclasses", "", "kata"},
			{"discovery.k8s.io", "v1", "endpointslices", namespace, "slice"},
			{"", "v1", "secrets", namespace, "volume"}, {"", "v1", "secrets", namespace, "init-env"}, {"", "v1", "secrets", namespace, "pull"},
			{"", "v1", "secrets", namespace, "stage"},
			{"", "v1", "configmaps", namespace, "env"}, {"", "v1", "configmaps", namespace, "projected"}, {"", "v1", "configmaps", namespace, "kube-root-ca.crt"},
			{"", "v1", "persistentvolumeclaims", namespace, "data"}, {"", "v1", "persistentvolumes", "", "pv-1"},
			{"storage.k8s.io", "v1", "volumeattachments", "", attachment}, {"storage.k8s.io", "v1", "csinodes", "", nodeName},
			{"", "v1", "serviceaccounts", namespace, "default"},
		} {
			Eventually(e.has(resource(want.group, want.version, want.resource), want.namespace, want.name)).Should(BeTrue(), "%s %s", want.resource, want.name)
		}
	})

	It("knows an optional secret to be absent, and knows nothing of what no pod refers to", func() {
		Eventually(e.knownAbsent(core("secrets"), namespace, "absent")).Should(BeTrue())
		for _, r := range []string{"secrets", "configmaps"} {
			Expect(e.has(core(r), namespace, "not-ours")()).To(BeFalse())
			Expect(e.store.Objects().Known(snapshot.Scope{Resource: core(r), Namespace: namespace, Name: "not-ours"})).To(BeFalse())
		}
	})

	It("keeps JSON with kind and version, without managedFields", func() {
		for _, r := range []string{"pods", "services", "secrets", "configmaps", "nodes"} {
			all, _ := e.store.Objects().List(core(r))
			Expect(all).NotTo(BeEmpty())
			for _, object := range all {
				var raw struct {
					APIVersion, Kind string
					Metadata         map[string]any
				}
				Expect(json.Unmarshal(object.Raw, &raw)).To(Succeed())
				Expect(raw.APIVersion).To(Equal("v1"))
				Expect(raw.Kind).NotTo(BeEmpty())
				Expect(raw.Metadata).NotTo(HaveKey("managedFields"))
				Expect(raw.Metadata).To(HaveKeyWithValue("uid", string(object.UID)))
			}
		}
	})

	It("follows changes, and an optional secret that is made after all", func() {
		settings := &corev1.ConfigMap{ObjectMeta: named("env"), Data: map[string]string{"a": "new"}}
		Expect(e.admin.Update(ctx, settings)).To(Succeed())
		Eventually(func() string {
			object, _ := e.store.Objects().Get(core("configmaps"), namespace, "env")
			return string(object.Raw)
		}).Should(ContainSubstring(`"a":"new"`))
		create(&corev1.Secret{ObjectMeta: named("absent")})
		Eventually(e.has(core("secrets"), namespace, "absent")).Should(BeTrue())
		Expect(e.admin.Delete(ctx, &corev1.Secret{ObjectMeta: named("absent")})).To(Succeed())
		Eventually(e.knownAbsent(core("secrets"), namespace, "absent")).Should(BeTrue())
	})

	It("reads an attachment again until it is attached", func() {
		var va storagev1.VolumeAttachment
		Expect(e.admin.Get(ctx, client.ObjectKey{Name: attachment}, &va)).To(Succeed())
		va.Status.Attached = true
		Expect(e.admin.Status().Update(ctx, &va)).To(Succeed())
		Eventually(func() bool {
			object, _ := e.store.Objects().Get(resource("storage.k8s.io", "v1", "volumeattachments"), "", attachment)
			return json.Unmarshal(object.Raw, &va) == nil && va.Status.Attached
		}).Should(BeTrue())
	})

	It("has the tokens that kubelet will ask for, and the keys to check them", func() {
		Eventually(func() int { return len(e.store.Objects().Tokens()) }).Should(Equal(2))
		keys, issuer := mirror.IssuerKeys(e.store.Objects())
		Expect(keys).NotTo(BeNil())
		Expect(issuer).To(Equal("https://kubernetes.default.svc.cluster.local"))

		now := time.Now()
		status, err := e.mirror.Replay(app.UID, namespace, "default", nil, 3607, now)
		Expect(err).NotTo(HaveOccurred())
		Expect(status.ExpirationTimestamp.Time).To(Equal(now.Add(10 * time.Minute)))
		vault, err := e.mirror.Replay(app.UID, namespace, "default", []string{"vault"}, 7200, now)
		Expect(err).NotTo(HaveOccurred())
		Expect(vault.Token).NotTo(Equal(status.Token))
		for name, request := range map[string]func() error{
			"another audience": func() error {
				_, err := e.mirror.Replay(app.UID, namespace, "default", []string{"x"}, 7200, now)
				return err
			},
			"other seconds":   func() error { _, err := e.mirror.Replay(app.UID, namespace, "default", nil, 600, now); return err },
			"another pod":     func() error { _, err := e.mirror.Replay("u", namespace, "default", nil, 3607, now); return err },
			"another account": func() error { _, err := e.mirror.Replay(app.UID, namespace, "admin", nil, 3607, now); return err },
		} {
			Expect(request()).To(MatchError(mirror.ErrNoToken), name)
		}
	})

	It("keeps no tokens when the policy says so, and says which pods need one", func() {
		e.adopt(v1alpha1.NodeRecoverySpec{Snapshot: v1alpha1.Snapshot{ServiceAccountTokens: v1alpha1.TokensOmit}})
		Eventually(func() int { return len(e.store.Objects().Tokens()) }).Should(BeZero())
		_, err := e.mirror.Replay(app.UID, namespace, "default", nil, 3607, time.Now())
		Expect(err).To(MatchError(mirror.ErrTokensOmitted))
		Eventually(func() []v1alpha1.Finding { return e.mirror.Report().Findings }).Should(ContainElement(And(
			HaveField("Reason", v1alpha1.ReasonTokensOmitted), HaveField("Pod", namespace+"/app"))))
		e.adopt(v1alpha1.NodeRecoverySpec{})
		Eventually(func() int { return len(e.store.Objects().Tokens()) }).Should(Equal(2))
	})

	It("mirrors the warm list as far as it is allowed, and names the rule that is missing", func() {
		e.adopt(v1alpha1.NodeRecoverySpec{CacheWarmup: v1alpha1.CacheWarmup{Resources: []v1alpha1.WarmResource{
			{Group: "apps", Resource: "deployments"}, {Group: "example.com", Resource: "nothing"},
			{Resource: "limitranges", Namespaces: []string{namespace}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"keep": "yes"}}},
		}}})
		create(
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "warm"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"limitranges"}, Verbs: []string{"get", "list", "watch"}}}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "warm"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "warm"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:nodes"}}},
			&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kept", Labels: map[string]string{"keep": "yes"}}},
			&corev1.LimitRange{ObjectMeta: named("left")},
		)
		Eventually(e.has(core("limitranges"), namespace, "kept")).Should(BeTrue())
		Expect(e.has(core("limitranges"), namespace, "left")()).To(BeFalse())
		Expect(e.store.Objects().Known(snapshot.Scope{Resource: core("limitranges"), Namespace: namespace})).To(BeFalse())
		Eventually(func() []v1alpha1.Finding { return e.mirror.Report().Findings }, 2*soon).Should(ConsistOf(
			And(HaveField("Reason", v1alpha1.ReasonReadRefused), HaveField("Object", "deployments.apps"), HaveField("Message", ContainSubstring(`{apiGroups: ["apps"], resources: ["deployments"], verbs: [get, list, watch]}`))),
			And(HaveField("Reason", v1alpha1.ReasonReadRefused), HaveField("Object", "nothing.example.com"), HaveField("Message", ContainSubstring("does not serve"))),
		))
		Expect(e.fresh()).To(Equal(v1alpha1.ReasonReadRefused))
		e.adopt(v1alpha1.NodeRecoverySpec{})
		Eventually(e.has(core("limitranges"), namespace, "kept")).Should(BeFalse())
		Eventually(e.fresh).Should(Equal(v1alpha1.ReasonInStep))
	})

	It("forgets what no pod refers to any more", func() {
		Expect(e.admin.Delete(ctx, app, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(e.has(core("secrets"), namespace, "volume")).Should(BeFalse())
		Eventually(func() bool {
			return e.store.Objects().Known(snapshot.Scope{Resource: core("secrets"), Namespace: namespace, Name: "absent"})
		}).Should(BeFalse())
		Eventually(e.has(core("persistentvolumeclaims"), namespace, "data")).Should(BeFalse())
		Eventually(e.has(core("persistentvolumes"), "", "pv-1")).Should(BeFalse())
		Eventually(func() int { return len(e.store.Objects().Tokens()) }).Should(BeZero())
		Expect(e.has(resource("storage.k8s.io", "v1", "csinodes"), "", nodeName)()).To(BeTrue())
	})

	It("believes that all pods are gone when the Node was deleted and made again while it was off, and looks twice", func() {
		names := []string{"web-0", "web-1", "web-2"}
		for _, name := range names {
			create(newPod(name))
		}
		Eventually(e.podNames).Should(Equal(names))
		e.link.Down()
		for _, name := range names {
			Expect(e.admin.Delete(ctx, newPod(name), client.GracePeriodSeconds(0))).To(Succeed())
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
		Expect(e.admin.Delete(ctx, node)).To(Succeed())
		node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
		create(node)
		e.link.Up(e.server.address())
		Eventually(e.fresh).Should(Equal(v1alpha1.ReasonPodListHeld))
		Consistently(e.podNames, 8*time.Second).Should(Equal(names))
		Eventually(e.podNames).Should(BeEmpty())
		Eventually(e.fresh).Should(Equal(v1alpha1.ReasonInStep))
		stored, _ := e.store.Objects().Get(core("nodes"), "", nodeName)
		Expect(stored.UID).To(Equal(node.UID))
	})
})

// attachment is csi- and the sha256 of vol-1, disk.example.com and edge-1.
const attachment = "csi-62b111b414c8a6534066ef180c5100f7aaade906d40f5b93c128a96f2bb85653"
