package images

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	testclock "k8s.io/utils/clock/testing"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// fakeRuntime is a registry and a runtime in memory.
type fakeRuntime struct {
	registry map[string]present
	// pulling gives the error of a pull; nil: none.
	pulling func(reference string, auth *runtimeapi.AuthConfig) error
	has     map[string]present
	labels  map[string]record
	damaged map[string]error // by id
	broken  map[string]bool  // by id: its program is empty
	calls   []string
	err     error
}

func (f *fakeRuntime) say(parts ...string) { f.calls = append(f.calls, strings.Join(parts, " ")) }

func (f *fakeRuntime) stock(context.Context) (stock, error) {
	s := stock{images: map[string]present{}, records: map[string]record{}}
	for name, image := range f.has {
		s.images[name] = image
		r := f.labels[name]
		r.target = &imagesapi.Image{Name: name, Target: &types.Descriptor{Digest: "target of " + image.id}}
		s.records[name] = r
	}
	return s, f.err
}

func (f *fakeRuntime) pull(_ context.Context, reference string, auth *runtimeapi.AuthConfig) error {
	f.say("pull", reference, auth.GetUsername())
	if f.pulling != nil {
		if err := f.pulling(reference, auth); err != nil {
			return err
		}
	}
	image, ok := f.registry[reference]
	if !ok {
		return status.Error(codes.NotFound, "not found")
	}
	f.has[reference] = image
	return nil
}

func (f *fakeRuntime) tag(_ context.Context, from, to string) error {
	f.say("tag", to)
	f.has[to] = f.has[from]
	return nil
}

func (f *fakeRuntime) remove(_ context.Context, reference string) error {
	f.say("remove", reference)
	delete(f.has, reference)
	return nil
}

func (f *fakeRuntime) own(_ context.Context, name string) error {
	r := f.labels[name]
	r.pulled = true
	f.labels[name] = r
	return nil
}

func (f *fakeRuntime) pin(_ context.Context, name string, on bool) error {
	f.say(map[bool]string{true: "pin", false: "unpin"}[on], name)
	r := f.labels[name]
	r.pinned, r.ours = on, on
	f.labels[name] = r
	return nil
}

func (f *fakeRuntime) inspect(_ context.Context, _, id string) error {
	if f.broken[id] {
		return errors.New("the program is empty")
	}
	return nil
}

func (f *fakeRuntime) check(_ context.Context, _, id string, skip func(string) bool, sound func(string)) (outcome, error) {
	f.say("check", id)
	if err := f.damaged[id]; err != nil {
		return outcome{}, err
	}
	if !skip("layer of " + id) {
		sound("layer of " + id)
	}
	return outcome{}, nil
}

func (f *fakeRuntime) renew(_ context.Context, _, id string, pull func() error) error {
	f.say("renew", id)
	if err := pull(); err != nil {
		return err
	}
	delete(f.damaged, id)
	return nil
}

func (f *fakeRuntime) sync(context.Context, string, string) error { return nil }

func (f *fakeRuntime) layers(_ context.Context, _, id string) ([]string, error) {
	return []string{"/layers/" + id, "/layers/base"}, nil
}

// fakeObjects is a snapshot of pods and secrets.
type fakeObjects struct {
	pods    []snapshot.Object
	secrets map[string]snapshot.Object
	doubted bool
}

func (f *fakeObjects) Get(_ schema.GroupVersionResource, namespace, name string) (snapshot.Object, bool) {
	object, ok := f.secrets[namespace+"/"+name]
	return object, ok
}
func (f *fakeObjects) List(schema.GroupVersionResource) ([]snapshot.Object, uint64) { return f.pods, 1 }
func (f *fakeObjects) Subscribe(func(snapshot.Event)) func()                        { return func() {} }
func (f *fakeObjects) Trusted() (bool, string)                                      { return !f.doubted, "" }

func object(t *testing.T, v any, uid string) snapshot.Object {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.Object{UID: apitypes.UID(uid), ResourceVersion: "1", Raw: raw}
}

type fixture struct {
	*Keeper
	runtime *fakeRuntime
	objects *fakeObjects
	clock   *testclock.FakeClock
	spec    *v1alpha1.NodeRecoverySpec
}

func newFixture(t *testing.T, unclean bool, pods ...*corev1.Pod) *fixture {
	t.Helper()
	f := &fixture{
		runtime: &fakeRuntime{registry: map[string]present{}, has: map[string]present{}, labels: map[string]record{}, damaged: map[string]error{}, broken: map[string]bool{}},
		objects: &fakeObjects{secrets: map[string]snapshot.Object{}},
		clock:   testclock.NewFakeClock(time.Unix(1000, 0)), spec: &v1alpha1.NodeRecoverySpec{},
	}
	for _, p := range pods {
		f.objects.pods = append(f.objects.pods, object(t, p, p.Name))
	}
	f.Keeper = New(Options{Objects: f.objects, Spec: func() *v1alpha1.NodeRecoverySpec { return f.spec }})
	f.Keeper.runtime, f.Keeper.clock, f.log = f.runtime, f.clock, logr.Discard()
	f.start = func(pull func()) { pull() }
	var err error
	if f.state, err = loadState(filepath.Join(t.TempDir(), "images.json"), "one", unclean); err != nil {
		t.Fatal(err)
	}
	return f
}

// passes until nothing is left to do now.
func (f *fixture) passes(settled bool) {
	for range 20 {
		if did, _ := f.pass(context.Background(), settled); !did {
			return
		}
	}
}

func (f *fixture) expect(t *testing.T, calls ...string) {
	t.Helper()
	got := f.runtime.calls
	f.runtime.calls = nil
	if diff := cmp.Diff(calls, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// An image that looks damaged is compared at once, also one that was found whole before.
func TestASuspectIsChecked(t *testing.T) {
	f := newFixture(t, false, pod("p", nil, "a"))
	f.runtime.has[a] = present{id: "1"}
	f.state.Checked["layer of 1"] = true
	f.passes(true)
	f.runtime.calls = nil
	f.Suspect("1")
	f.passes(true)
	f.expect(t, "check 1")
	f.runtime.damaged["1"] = errContent
	f.runtime.pulling = func(string, *runtimeapi.AuthConfig) error { return status.Error(codes.Unavailable, "no route") }
	f.Suspect("1")
	f.passes(true)
	f.expect(t, "check 1", "renew 1", "pull "+a+" ")
}

const a, b = "r.example/a:latest", "r.example/b:latest"

func TestANewPodsImageIsLeftToKubeletAtFirst(t *testing.T) {
	f := newFixture(t, false, pod("a", nil, "a"))
	f.runtime.registry[a] = present{"1", 10}
	f.passes(true)
	f.expect(t)
	f.clock.Step(kubeletFirst)
	f.passes(true)
	f.expect(t, "pull "+a+" ", "pin "+a)
	if r := f.Report(); r.Warm.Reason != v1alpha1.ReasonImagesPresent || r.Status.Pinned != 1 {
		t.Errorf("report %+v", r)
	}
}

func TestAPrivateImageThatKubeletHasNotPulled(t *testing.T) {
	f := newFixture(t, false, pod("a", func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "key"}} }, "a"))
	f.objects.secrets["shop/key"] = object(t, &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{
		corev1.DockerConfigJsonKey: []byte(`{"auths":{"r.example":{"username":"u","password":"p"}}}`)}}, "key")
	f.runtime.registry[a] = present{"1", 10}
	f.runtime.pulling = func(_ string, auth *runtimeapi.AuthConfig) error {
		if auth.GetUsername() != "u" {
			return status.Error(codes.Unknown, "authorization failed: no basic auth credentials")
		}
		return nil
	}
	f.passes(true)
	f.clock.Step(kubeletFirst)
	f.passes(true)
	f.expect(t, "pull "+a+" ")
	if p := f.Report().Status.Problems; len(p) != 1 || p[0].Reason != v1alpha1.ImageLeftToKubelet {
		t.Errorf("problems %+v", p)
	}
	// Once kubelet has, the agent may; and the policy's own images it may pull at once.
	f.spec.CacheWarmup.Images.Extra = []string{"r.example/a"}
	f.Wake(true)
	f.passes(true)
	f.expect(t, "pull "+a+" u", "pin "+a)
}

func TestAnImageThatRanIsPulledByItsDigest(t *testing.T) {
	ran := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", ImageID: "r.example/a@sha256:aa"}}
	}
	f := newFixture(t, false, pod("a", ran, "a"))
	f.runtime.registry["r.example/a@sha256:aa"] = present{"1", 10}
	f.passes(true)
	f.expect(t, "pull r.example/a@sha256:aa ", "tag "+a, "pin "+a)

	gone := newFixture(t, false, pod("a", ran, "a"))
	gone.runtime.registry[a] = present{"2", 10}
	gone.passes(true)
	gone.expect(t, "pull r.example/a@sha256:aa ", "pull "+a+" ", "pin "+a)
}

func TestARegistryThatDoesNotAnswerIsAskedLessAndLess(t *testing.T) {
	f := newFixture(t, false)
	f.spec.CacheWarmup.Images.Extra = []string{"r.example/a", "r.example/b", "other.example/c"}
	f.runtime.registry["other.example/c:latest"] = present{"3", 10}
	f.runtime.pulling = func(reference string, _ *runtimeapi.AuthConfig) error {
		if strings.HasPrefix(reference, "r.example") {
			return status.Error(codes.Unknown, "dial tcp: i/o timeout")
		}
		return nil
	}
	f.passes(true)
	f.expect(t, "pull "+a+" ", "pull other.example/c:latest ", "pin other.example/c:latest")
	if p := f.Report().Status.Problems; p[0].Reason != v1alpha1.ImageRegistryUnreachable {
		t.Errorf("problems %+v", p)
	}
	f.clock.Step(shortestWait)
	f.passes(true)
	f.expect(t, "pull "+a+" ")
	f.clock.Step(shortestWait)
	f.passes(true)
	f.expect(t)
	// The network has come back.
	f.runtime.pulling = nil
	f.runtime.registry[a], f.runtime.registry[b] = present{"1", 10}, present{"2", 10}
	f.Wake(true)
	f.passes(true)
	f.expect(t, "pull "+a+" ", "pin "+a, "pull "+b+" ", "pin "+b)
}

func TestAfterAPowerCutImagesAreChecked(t *testing.T) {
	onNode := func(f *fixture) {
		f.runtime.has[a], f.runtime.has[b] = present{"1", 10}, present{"2", 10}
		f.runtime.labels[a], f.runtime.labels[b] = record{pinned: true, ours: true}, record{pinned: true, ours: true}
		f.runtime.registry[a], f.runtime.registry[b] = present{"1", 10}, present{"2", 10}
	}
	cases := map[string]struct {
		clean   bool
		settled bool
		do      func(*fixture)
		want    []string
		reason  string
	}{
		"all of them once":                     {settled: true, want: []string{"check 1", "check 2"}, reason: v1alpha1.ReasonImagesPresent},
		"not after an orderly one":             {clean: true, settled: true, reason: v1alpha1.ReasonImagesPresent},
		"not while pods still start":           {reason: v1alpha1.ReasonImagesPresent},
		"at once if a program is visibly lost": {do: func(f *fixture) { f.runtime.broken["2"] = true }, want: []string{"check 2"}, reason: v1alpha1.ReasonImagesPresent},
		"a lost blob is got from the registry": {settled: true, do: func(f *fixture) { f.runtime.damaged["1"] = errContent },
			want: []string{"check 1", "renew 1", "pull " + a + " ", "check 1", "check 2"}, reason: v1alpha1.ReasonImagesPresent},
		"what cannot be mended is a reason, and keeps no other from being checked": {settled: true, do: func(f *fixture) { f.runtime.damaged["1"] = errMarks },
			want: []string{"check 1", "check 2"}, reason: v1alpha1.ReasonImagesMissing},
		"a runtime that goes away says nothing of an image": {settled: true, do: func(f *fixture) { f.runtime.damaged["1"] = status.Error(codes.Unavailable, "gone") },
			want: []string{"check 1", "check 2"}, reason: v1alpha1.ReasonImagesPresent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, !tc.clean, pod("a", nil, "a"), pod("b", nil, "b"))
			onNode(f)
			if tc.do != nil {
				tc.do(f)
			}
			f.passes(tc.settled)
			f.passes(tc.settled)
			f.expect(t, tc.want...)
			if got := f.Report().Warm.Reason; got != tc.reason {
				t.Errorf("reason %s, want %s", got, tc.reason)
			}
		})
	}
}

func TestNoPinIsTakenAwayWhileThePodsAreNotKnown(t *testing.T) {
	f := newFixture(t, false)
	f.objects.doubted = true
	f.runtime.has[a], f.runtime.labels[a] = present{"1", 10}, record{pinned: true, ours: true}
	f.passes(true)
	f.expect(t)
	f.objects.doubted = false
	f.passes(true)
	f.expect(t, "unpin "+a)
}

func TestWithoutAPolicyNothingIsKept(t *testing.T) {
	f := newFixture(t, false, pod("a", nil, "a"))
	f.spec = nil
	f.runtime.has[a], f.runtime.labels[a] = present{"1", 10}, record{pinned: true, ours: true}
	f.passes(true)
	f.expect(t, "unpin "+a)
	if r := f.Report(); r.Status != nil || r.Warm.Reason != v1alpha1.ReasonNoPolicy {
		t.Errorf("report %+v", r)
	}
}

func TestARuntimeThatIsSilentIsTold(t *testing.T) {
	f := newFixture(t, false)
	f.runtime.err = errors.New("no such socket")
	f.passes(true)
	if r := f.Report(); r.Warm.Reason != v1alpha1.ReasonNotEvaluated {
		t.Errorf("at first: report %+v", r)
	}
	f.clock.Step(silence)
	f.passes(true)
	if r := f.Report(); r.Warm.Reason != v1alpha1.ReasonRuntimeSilent {
		t.Errorf("report %+v", r)
	}
}

func TestStateOutlivesTheAgentNotTheBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images.json")
	s, err := loadState(path, "one", true)
	if err != nil {
		t.Fatal(err)
	}
	s.Checked["1"], s.Damaged["2"], s.Sizes[a] = true, true, 10
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	same, err := loadState(path, "one", false)
	if err != nil || !same.Unclean || !same.Checked["1"] || !same.Damaged["2"] || same.Sizes[a] != 10 {
		t.Errorf("in the same boot: %+v, %v", same, err)
	}
	next, err := loadState(path, "two", false)
	if err != nil || next.Unclean || next.Checked["1"] || !next.Damaged["2"] {
		t.Errorf("in the next boot: %+v, %v", next, err)
	}
}

func TestAStateThatCannotBeReadHasAllChecked(t *testing.T) {
	cases := map[string]func(path string) error{
		"damaged": func(path string) error {
			return os.WriteFile(path, []byte(`{"boot":"one","checked":{"1":true}`), 0o600)
		},
		"not to be read":  func(path string) error { return os.Mkdir(path, 0o700) },
		"of another make": func(path string) error { return os.WriteFile(path, []byte(`{"boot":"one","checked":[1]}`), 0o600) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "images.json")
			must(t, spoil(path))
			s, err := loadState(path, "one", false)
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v does not name the file", err)
			}
			if !s.Unclean || len(s.Checked) > 0 {
				t.Errorf("state %+v", s)
			}
		})
	}
}

func TestLayersAreToldOnceWhenTheRecoveryIsOver(t *testing.T) {
	f := newFixture(t, false, pod("a", nil, "a"), pod("b", nil, "b"))
	f.runtime.has[a], f.runtime.has[b] = present{"1", 10}, present{"2", 10}
	var told [][]string
	f.Settled = func(_ context.Context, layers []string) { told = append(told, layers) }
	f.passes(false)
	if len(told) > 0 {
		t.Errorf("during the recovery: %v", told)
	}
	f.passes(true)
	f.passes(true)
	if diff := cmp.Diff([][]string{{"/layers/1", "/layers/base", "/layers/2"}}, told); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
}

func TestALongPullKeepsNothingFromBeingPinned(t *testing.T) {
	f := newFixture(t, false)
	f.spec.CacheWarmup.Images.Extra = []string{"r.example/a"}
	f.runtime.registry[a] = present{"1", 10}
	var pulls []func()
	f.start = func(pull func()) { pulls = append(pulls, pull) }
	f.passes(true)
	f.runtime.has[b] = present{"2", 10}
	f.spec.CacheWarmup.Images.Extra = []string{"r.example/a", "r.example/b", "r.example/c"}
	f.passes(true)
	f.expect(t, "pin "+b)
	if len(pulls) != 1 {
		t.Fatalf("%d pulls at once", len(pulls))
	}
	pulls[0]()
	f.passes(true)
	f.expect(t, "pull "+a+" ", "pin "+a)
	if len(pulls) != 2 {
		t.Errorf("%d pulls, the next has not begun", len(pulls))
	}
}
