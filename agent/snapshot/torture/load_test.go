package torture

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/snapshot/durable"
)

// fullNode fills a store with 110 pods, a secret and a token for each, 1000 services and
// 1000 endpoint slices, each of a usual size.
func fullNode(t testing.TB, o *snapshot.Objects) {
	t.Helper()
	some := func(number, bytes int) []snapshot.Object {
		var objects []snapshot.Object
		for i := range number {
			name := fmt.Sprintf("object-%04d", i)
			objects = append(objects, snapshot.Object{
				Namespace: "shop", Name: name, UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), ResourceVersion: fmt.Sprint(1000 + i),
				Raw: fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"shop","resourceVersion":"%d"},"filler":%q}`, name, 1000+i, strings.Repeat("x", bytes)),
			})
		}
		return objects
	}
	sync := func(scope snapshot.Scope, objects []snapshot.Object) {
		if err := o.Sync(scope, "3000", objects); err != nil {
			t.Fatal(err)
		}
	}
	pods := some(110, 6000)
	sync(allPods, pods)
	sync(snapshot.Scope{Resource: services}, some(1000, 1200))
	sync(snapshot.Scope{Resource: discoveryv1.SchemeGroupVersion.WithResource("endpointslices")}, some(1000, 1800))
	sync(snapshot.Scope{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespace: "shop"}, some(110, 2000))
	sync(snapshot.Scope{Resource: snapshot.Secrets, Namespace: "shop"}, some(110, 1000))
	for _, pod := range pods {
		if err := o.PutToken(snapshot.TokenKey{PodUID: pod.UID, Namespace: "shop"}, snapshot.Token{Token: strings.Repeat("t", 1100)}); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	store, err := snapshot.Open(dir, logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	fullNode(b, store.Objects())
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, durable.FileName)); err == nil {
		b.Logf("the file has %d KiB", info.Size()>>10)
	}
	b.ReportAllocs()
	for b.Loop() {
		store, err := snapshot.Open(dir, logr.Discard(), snapshot.WithChecker(durable.SelfChecker()))
		if err != nil {
			b.Fatal(err)
		}
		if pods, _ := store.Objects().List(snapshot.Pods); len(pods) != 110 {
			b.Fatalf("%d pods", len(pods))
		}
		b.StopTimer()
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
