package mirror

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"rekindle.edge/agent/snapshot"
)

func TestNeedsOf(t *testing.T) {
	cases := map[string]struct {
		pod     string
		want    []string
		tokens  []tokenSource
		drivers []string
		bundles bool
	}{
		"a pod without references needs its service account": {
			pod: `{spec: {serviceAccountName: web}}`, want: []string{"serviceaccounts/web"},
		},
		"a static pod needs nothing": {pod: `{spec: {containers: [{name: a}]}}`},
		"a secret volume":            {pod: `{spec: {volumes: [{secret: {secretName: s}}]}}`, want: []string{"secrets/s"}},
		"an optional secret is looked for as well": {
			pod: `{spec: {volumes: [{secret: {secretName: s, optional: true}}]}}`, want: []string{"secrets/s"},
		},
		"a configmap volume": {pod: `{spec: {volumes: [{configMap: {name: c}}]}}`, want: []string{"configmaps/c"}},
		"the volume that every pod has": {
			pod: `{spec: {volumes: [{projected: {sources: [{serviceAccountToken: {expirationSeconds: 3607, path: token}},
				{configMap: {name: kube-root-ca.crt}}, {downwardAPI: {}}]}}]}}`,
			want: []string{"configmaps/kube-root-ca.crt"}, tokens: []tokenSource{{ExpirationSeconds: 3607}},
		},
		"projected secrets and tokens for others": {
			pod:  `{spec: {volumes: [{projected: {sources: [{secret: {name: s}}, {serviceAccountToken: {audience: vault}}]}}]}}`,
			want: []string{"secrets/s"}, tokens: []tokenSource{{Audience: "vault", ExpirationSeconds: 3600}},
		},
		"projected trust bundles": {
			pod: `{spec: {volumes: [{projected: {sources: [{clusterTrustBundle: {name: b}}]}}]}}`, bundles: true,
		},
		"envFrom of a container": {
			pod:  `{spec: {containers: [{envFrom: [{secretRef: {name: s}}, {configMapRef: {name: c}}]}]}}`,
			want: []string{"configmaps/c", "secrets/s"},
		},
		"env of a container": {
			pod: `{spec: {containers: [{env: [{valueFrom: {secretKeyRef: {name: s}}}, {valueFrom: {configMapKeyRef: {name: c}}},
				{valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: plain, value: v}]}]}}`,
			want: []string{"configmaps/c", "secrets/s"},
		},
		"init containers": {
			pod:  `{spec: {initContainers: [{envFrom: [{secretRef: {name: s}}]}]}}`,
			want: []string{"secrets/s"},
		},
		"ephemeral containers": {
			pod:  `{spec: {ephemeralContainers: [{env: [{valueFrom: {configMapKeyRef: {name: c}}}], envFrom: [{secretRef: {name: s}}]}]}}`,
			want: []string{"configmaps/c", "secrets/s"},
		},
		"pull secrets": {pod: `{spec: {imagePullSecrets: [{name: s}, {name: ""}]}}`, want: []string{"secrets/s"}},
		"an inline CSI volume": {
			pod:  `{spec: {volumes: [{csi: {driver: d.example, nodePublishSecretRef: {name: s}}}]}}`,
			want: []string{"secrets/s"}, drivers: []string{"d.example"},
		},
		"volumes of old that name a secret": {
			pod: `{spec: {volumes: [{azureFile: {secretName: a}}, {cephfs: {secretRef: {name: b}}}, {cinder: {secretRef: {name: c}}},
				{flexVolume: {secretRef: {name: d}}}, {rbd: {secretRef: {name: e}}}, {scaleIO: {secretRef: {name: f}}},
				{iscsi: {secretRef: {name: g}}}, {storageos: {secretRef: {name: h}}}, {rbd: {}}]}}`,
			want: []string{"secrets/a", "secrets/b", "secrets/c", "secrets/d", "secrets/e", "secrets/f", "secrets/g", "secrets/h"},
		},
		"a claim": {pod: `{spec: {volumes: [{persistentVolumeClaim: {claimName: p}}]}}`, want: []string{"persistentvolumeclaims/p"}},
		"a claim made for the pod": {
			pod: `{metadata: {name: db-0}, spec: {volumes: [{name: data, ephemeral: {}}]}}`, want: []string{"persistentvolumeclaims/db-0-data"},
		},
		"resource claims, named, made and extended": {
			pod: `{spec: {resourceClaims: [{name: a, resourceClaimName: named}, {name: b, resourceClaimTemplateName: t}]},
				status: {resourceClaimStatuses: [{name: b, resourceClaimName: made}, {name: c}], extendedResourceClaimStatus: {resourceClaimName: ext}}}`,
			want: []string{"resourceclaims/ext", "resourceclaims/made", "resourceclaims/named"},
		},
		"a finished job needs nothing any more": {
			pod: `{spec: {restartPolicy: Never, volumes: [{secret: {secretName: s}}]}, status: {phase: Succeeded}}`,
		},
		"a pod that a shutdown ended may be started again": {
			pod:  `{spec: {restartPolicy: Always, volumes: [{secret: {secretName: s}}]}, status: {phase: Failed}}`,
			want: []string{"secrets/s"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pod corev1.Pod
			if err := yaml.UnmarshalStrict([]byte(tc.pod), &pod); err != nil {
				t.Fatal(err)
			}
			pod.Namespace = "shop"
			needs := needsOf(&pod)
			var got []string
			for scope := range needs.objects {
				if scope.Namespace != "shop" {
					t.Errorf("%v is not of the pod's namespace", scope)
				}
				got = append(got, scope.Resource.Resource+"/"+scope.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.tokens, needs.tokens); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.drivers, needs.drivers); diff != "" || needs.trustBundles != tc.bundles {
				t.Errorf("drivers (-want +got), bundles %t:\n%s", needs.trustBundles, diff)
			}
		})
	}
}

// kept is a snapshot of these objects.
func kept(t *testing.T, objects ...any) lookup {
	t.Helper()
	all := map[snapshot.Scope]snapshot.Object{}
	for _, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		resource := map[string]schema.GroupVersionResource{
			"*v1.PersistentVolumeClaim": claims, "*v1.PersistentVolume": volumes, "*v1.CSIDriver": csiDrivers,
		}[fmt.Sprintf("%T", o)]
		meta := o.(metav1.Object)
		all[snapshot.Scope{Resource: resource, Namespace: meta.GetNamespace(), Name: meta.GetName()}] = snapshot.Object{Raw: raw}
	}
	return func(resource schema.GroupVersionResource, namespace, name string) (snapshot.Object, bool) {
		o, ok := all[snapshot.Scope{Resource: resource, Namespace: namespace, Name: name}]
		return o, ok
	}
}

func TestCloseOver(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
	volume := func(source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: source, ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "p"}}}
	}
	csi := volume(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: "d.example", VolumeHandle: "h",
		NodePublishSecretRef: &corev1.SecretReference{Namespace: "csi", Name: "publish"}, NodeStageSecretRef: &corev1.SecretReference{Namespace: "csi", Name: "stage"},
		NodeExpandSecretRef: &corev1.SecretReference{Namespace: "csi", Name: "expand"}, ControllerPublishSecretRef: &corev1.SecretReference{Namespace: "csi", Name: "not-the-nodes"},
	}})
	driver := func(attach bool, requests ...storagev1.TokenRequest) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d.example"}, Spec: storagev1.CSIDriverSpec{AttachRequired: &attach, TokenRequests: requests}}
	}
	onClaim := podNeeds{objects: objectSet{{Resource: claims, Namespace: "shop", Name: "p"}: true}}

	cases := map[string]struct {
		needs  podNeeds
		kept   lookup
		want   []string
		tokens []tokenSource
	}{
		"a node without pods has its CSINode": {kept: kept(t), want: []string{"csinodes/edge-1"}},
		"a claim that was not read yet": {
			needs: onClaim, kept: kept(t), want: []string{"csinodes/edge-1", "persistentvolumeclaims/shop/p"},
		},
		"a claim that is bound leads to its volume": {
			needs: onClaim, kept: kept(t, claim), want: []string{"csinodes/edge-1", "persistentvolumeclaims/shop/p", "persistentvolumes/pv"},
		},
		"a CSI volume leads to kubelet's secrets and the attachment": {
			needs: onClaim, kept: kept(t, claim, csi),
			want: []string{"csinodes/edge-1", "persistentvolumeclaims/shop/p", "persistentvolumes/pv", "secrets/csi/expand", "secrets/csi/publish",
				"secrets/csi/stage", "volumeattachments/" + attachmentName("h", "d.example", "edge-1")},
		},
		"a driver that attaches nothing has no attachment": {
			needs: onClaim, kept: kept(t, claim, csi, driver(false)),
			want: []string{"csinodes/edge-1", "persistentvolumeclaims/shop/p", "persistentvolumes/pv", "secrets/csi/expand", "secrets/csi/publish", "secrets/csi/stage"},
		},
		"a driver's tokens are those of its volumes' pods": {
			needs: onClaim, kept: kept(t, claim, csi, driver(false, storagev1.TokenRequest{Audience: "vault", ExpirationSeconds: ptr.To[int64](900)}, storagev1.TokenRequest{})),
			want:   []string{"csinodes/edge-1", "persistentvolumeclaims/shop/p", "persistentvolumes/pv", "secrets/csi/expand", "secrets/csi/publish", "secrets/csi/stage"},
			tokens: []tokenSource{{Audience: "vault", ExpirationSeconds: 900}, {ExpirationSeconds: 3600}},
		},
		"also of its inline volumes": {
			needs: podNeeds{drivers: []string{"d.example"}, tokens: []tokenSource{{Audience: "vault", ExpirationSeconds: 900}}},
			kept:  kept(t, driver(false, storagev1.TokenRequest{Audience: "vault", ExpirationSeconds: ptr.To[int64](900)})),
			want:  []string{"csinodes/edge-1"}, tokens: []tokenSource{{Audience: "vault", ExpirationSeconds: 900}},
		},
		"a secret without a namespace is in the claim's": {
			needs: onClaim, kept: kept(t, claim, volume(corev1.PersistentVolumeSource{RBD: &corev1.RBDPersistentVolumeSource{SecretRef: &corev1.SecretReference{Name: "ceph"}}})),
			want: []string{"csinodes/edge-1", "persistentvolumeclaims/shop/p", "persistentvolumes/pv", "secrets/shop/ceph"},
		},
		"an Azure share may have its secret elsewhere": {
			needs: onClaim, kept: kept(t, claim, volume(corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: "s", SecretNamespace: ptr.To("azure")}})),
			want: []string{"csinodes/edge-1", "persistentvolumeclaims/shop/p", "persistentvolumes/pv", "secrets/azure/s"},
		},
		"trust bundles are one collection": {
			needs: podNeeds{trustBundles: true}, kept: kept(t), want: []string{"clustertrustbundles", "csinodes/edge-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := closeOver("edge-1", []pod{{podName: podName{"shop", "web", "uid"}, account: "web", needs: tc.needs}}, tc.kept)
			var got []string
			for _, set := range []objectSet{c.watched, c.got} {
				for scope := range set {
					text := scope.Resource.Resource
					for _, part := range []string{scope.Namespace, scope.Name} {
						if part != "" {
							text += "/" + part
						}
					}
					got = append(got, text)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("closure (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.tokens, c.tokens["uid"].Sources); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAttachmentName(t *testing.T) {
	// printf 'vol-1ebs.csi.aws.comedge-1' | sha256sum
	const want = "csi-077376d69308e80c1e1e3e31da010b88bc31e52d97bca2020fd3d96babfdf477"
	if got := attachmentName("vol-1", "ebs.csi.aws.com", "edge-1"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
