package mirror

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestNeedsOfOnePod(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d.example", VolumeHandle: "h", NodePublishSecretRef: &corev1.SecretReference{Namespace: "csi", Name: "publish"}}},
	}}
	cases := map[string]struct {
		spec        corev1.PodSpec
		annotations map[string]string
		want        []string
		drivers     []string
		tokens      int
	}{
		"a pod that refers to nothing": {},
		"a volume names the keys that must be there": {
			spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Items: []corev1.KeyToPath{{Key: "k"}},
			}}}}},
			want: []string{`configmaps/shop/c volume "v" [k]`},
		},
		"a variable that may be absent": {
			spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k", Optional: ptr.To(true)},
			}}}}}},
			want: []string{`secrets/shop/s container "app" [k] optional`},
		},
		"what a container can start without": {
			spec: corev1.PodSpec{ServiceAccountName: "a", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "p"}}},
			want: []string{`secrets/shop/p imagePullSecrets [] optional waived`, `serviceaccounts/shop/a serviceAccountName [] optional waived`},
		},
		"an ephemeral container is not started again": {
			spec: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", EnvFrom: []corev1.EnvFromSource{{
				ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}},
			}}}}}},
			want: []string{`configmaps/shop/c container "debug" [] waived`},
		},
		"a claim leads to volume, secret, attachment and CSINode": {
			spec: corev1.PodSpec{RuntimeClassName: ptr.To("kata"), Volumes: []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}},
			want: []string{
				`csinodes//edge-1 its CSI volumes []`, `persistentvolumeclaims/shop/data volume "d" []`, `persistentvolumes//pv a persistent volume []`,
				`runtimeclasses//kata runtimeClassName []`, `secrets/csi/publish a persistent volume []`,
				`volumeattachments//` + attachmentName("h", "d.example", "edge-1") + ` a persistent volume []`,
			},
			drivers: []string{"d.example"},
		},
		"a token of a projected volume": {
			spec: corev1.PodSpec{ServiceAccountName: "a", Volumes: []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}},
			}}}}},
			want: []string{`serviceaccounts/shop/a serviceAccountName [] optional waived`}, tokens: 1,
		},
		"a static pod needs nothing of the API": {
			annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"},
			spec:        corev1.PodSpec{ServiceAccountName: "a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Annotations: tc.annotations}, Spec: tc.spec}
			needs := NeedsOf("edge-1", p, kept(t, claim, volume))
			var got []string
			for _, use := range needs.Uses {
				line := fmt.Sprintf("%s/%s/%s %s %v", use.Resource.Resource, use.Namespace, use.Name, use.Place, use.Keys)
				if use.Optional {
					line += " optional"
				}
				if use.Waived {
					line += " waived"
				}
				got = append(got, line)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("uses (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.drivers, needs.Drivers); diff != "" || len(needs.Tokens) != tc.tokens {
				t.Errorf("%d tokens, want %d; drivers (-want +got):\n%s", len(needs.Tokens), tc.tokens, diff)
			}
		})
	}
}
