package gather

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/snapshot"
)

// BenchmarkCheck is one pass on a node with 110 pods, each with a configmap, a secret, a
// token volume and an image of its own, when nothing has changed since the last one.
func BenchmarkCheck(b *testing.B) {
	var pods []*corev1.Pod
	for i := range 110 {
		name := fmt.Sprintf("web-%d", i)
		pods = append(pods, pod(name, func(spec *corev1.PodSpec) {
			spec.ServiceAccountName = "a"
			spec.Containers = []corev1.Container{{Name: "app", Image: name, EnvFrom: []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
			}}}
			spec.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}}}}}}
		}))
	}
	n := newNode(b, pods...)
	for i, p := range pods {
		meta := metav1.ObjectMeta{Namespace: "shop", Name: p.Name, UID: p.UID}
		n.sync(scope("configmaps", p.Name), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"k": "v"}})
		n.sync(scope("secrets", p.Name), &corev1.Secret{ObjectMeta: meta})
		n.cri.images[p.Name] = image(fmt.Sprint(i))
		n.write(fmt.Sprintf("/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/%d", i), "x")
		key := snapshot.TokenKey{PodUID: types.UID(p.UID), Namespace: "shop", ServiceAccount: "a", ExpirationSeconds: 3600}
		if err := n.store.Objects().PutToken(key, snapshot.Token{Token: "t"}); err != nil {
			b.Fatal(err)
		}
	}
	if found := n.reasons(); len(found) > 0 {
		b.Fatalf("the node is not well: %v", found)
	}
	b.ReportAllocs()
	for b.Loop() {
		readiness.Check(n.Facts(b.Context()))
	}
}
