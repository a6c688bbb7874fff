package gather

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/localapi"
	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

type identity struct {
	ends time.Time
	err  error
}

func (i identity) Read() (*localapi.Identity, error) {
	if i.err != nil {
		return nil, i.err
	}
	leaf := &x509.Certificate{NotBefore: noon.Add(-time.Hour), NotAfter: i.ends}
	return &localapi.Identity{Node: "edge-1", Certificate: tls.Certificate{Leaf: leaf}}, nil
}

// systemd has the same state for all units.
type systemd struct {
	file host.UnitFile
	asks int
}

func (*systemd) MainPID(context.Context, string) (int, error) { return 0, errors.New("no systemd") }
func (s *systemd) UnitFile(context.Context, string) (host.UnitFile, error) {
	s.asks++
	return s.file, nil
}

// cri has images by the names that pods use.
type cri struct {
	images  map[string]*runtimeapi.Image
	asks    int
	down    bool
	info    map[string]string
	network string
}

func (c *cri) Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error) {
	if c.down {
		return nil, errors.New("down")
	}
	return &runtimeapi.StatusResponse{Info: c.info, Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: c.network == "", Message: c.network},
	}}}, nil
}

func (c *cri) ListImages(context.Context, *runtimeapi.ListImagesRequest, ...grpc.CallOption) (*runtimeapi.ListImagesResponse, error) {
	var list []*runtimeapi.Image
	for _, image := range c.images {
		list = append(list, image)
	}
	return &runtimeapi.ListImagesResponse{Images: list}, nil
}

func (c *cri) ImageStatus(_ context.Context, in *runtimeapi.ImageStatusRequest, _ ...grpc.CallOption) (*runtimeapi.ImageStatusResponse, error) {
	c.asks++
	return &runtimeapi.ImageStatusResponse{Image: c.images[in.Image.Image]}, nil
}

func (c *cri) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest, ...grpc.CallOption) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{
		{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs"}},
	}}, nil
}

// node is a gatherer over a directory, with a store that has what a node keeps.
type node struct {
	*Gatherer
	t       testing.TB
	store   *snapshot.Store
	cri     *cri
	systemd *systemd
	spec    *snapshot.Spec
}

func newNode(t testing.TB, pods ...*corev1.Pod) *node {
	t.Helper()
	store, err := snapshot.Open(t.TempDir(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	n := &node{t: t, store: store, cri: &cri{images: map[string]*runtimeapi.Image{}}, systemd: &systemd{file: host.UnitFile{State: "enabled"}}}
	settings := config.Default()
	n.Gatherer = &Gatherer{
		Settings: settings, Objects: store.Objects(), Identity: identity{ends: noon.Add(100 * time.Hour)}, Units: n.systemd, Runtime: n.cri,
		Spec:   func() *snapshot.Spec { return n.spec },
		Missed: func() []v1alpha1.MissedResource { return nil },
		Serving: func() metav1.Condition {
			return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonKubeletServed}
		},
		Root: t.TempDir(), Now: func() time.Time { return noon },
		// The disk of the machine that the test runs on may be as full as it likes.
		statfs: func(path string, fs *unix.Statfs_t) error {
			err := unix.Statfs(path, fs)
			fs.Bavail, fs.Ffree = fs.Blocks/2, fs.Files/2
			return err
		},
	}
	n.write("/dev/rtc0", "")
	for _, resource := range waitedFor {
		n.sync(snapshot.Scope{Resource: resource})
	}
	n.sync(snapshot.Scope{Resource: snapshot.Nodes, Name: "edge-1"}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", UID: "n"}})
	var objects []metav1.Object
	for _, pod := range pods {
		objects = append(objects, pod)
	}
	n.sync(snapshot.Scope{Resource: snapshot.Pods}, objects...)
	store.Objects().MarkInStep(snapshot.Pods, noon)
	return n
}

func (n *node) sync(scope snapshot.Scope, objects ...metav1.Object) {
	n.t.Helper()
	var list []snapshot.Object
	for _, object := range objects {
		raw, err := json.Marshal(object)
		if err != nil {
			n.t.Fatal(err)
		}
		list = append(list, snapshot.Object{Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: "5", Raw: raw})
	}
	if err := n.store.Objects().Sync(scope, "5", list); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) write(path, content string) {
	n.t.Helper()
	path = filepath.Join(n.Root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// reasons are those of what is found, without the one that every new store has.
func (n *node) reasons() []string {
	n.t.Helper()
	var found []string
	for _, f := range readiness.Check(n.Facts(n.t.Context())) {
		if f.Reason != v1alpha1.ReasonNoSealedGeneration {
			found = append(found, f.Reason)
		}
	}
	return found
}

func pod(name string, change func(*corev1.PodSpec)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	change(&p.Spec)
	return p
}

func scope(resource, name string) snapshot.Scope {
	return snapshot.Scope{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Namespace: "shop", Name: name}
}
