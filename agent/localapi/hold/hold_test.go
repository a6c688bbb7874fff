package hold

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// stored is a snapshot with a pod that has an exclusive volume, one that has none, and one
// that is over.
type stored struct {
	objects map[schema.GroupVersionResource]map[string]string
	inStep  time.Time
	doubt   string
}

func newStored() *stored {
	pod := func(name, volumes, phase string) string {
		return `{"metadata":{"name":"` + name + `","namespace":"default","uid":"uid-` + name + `"},"spec":{"volumes":[` + volumes + `]},"status":{"phase":"` + phase + `"}}`
	}
	const data = `{"name":"data","persistentVolumeClaim":{"claimName":"data"}}`
	return &stored{
		inStep: time.Unix(500, 0),
		objects: map[schema.GroupVersionResource]map[string]string{
			attachments: {"csi-1": `{"spec":{"source":{"persistentVolumeName":"pv-1"}}}`, "csi-2": `{"spec":{"source":{"persistentVolumeName":"pv-2"}}}`},
			persistentVolumes: {
				"pv-1": `{"spec":{"accessModes":["ReadWriteOnce"]}}`, "pv-2": `{"spec":{"accessModes":["ReadWriteMany"]}}`,
			},
			claims: {"data": `{"spec":{"volumeName":"pv-1"}}`, "shared": `{"spec":{"volumeName":"pv-2"}}`, "gen-scratch": `{"spec":{"volumeName":"pv-1"}}`},
			snapshot.Pods: {
				"db":   pod("db", data, "Running"),
				"done": pod("done", data, "Succeeded"),
				"gen":  pod("gen", `{"name":"scratch","ephemeral":{}}`, "Running"),
				"web":  pod("web", `{"name":"x","persistentVolumeClaim":{"claimName":"shared"}},{"name":"e","emptyDir":{}}`, "Running"),
			},
		},
	}
}

func (s *stored) Get(resource schema.GroupVersionResource, _, name string) (snapshot.Object, bool) {
	raw, ok := s.objects[resource][name]
	return snapshot.Object{Namespace: "default", Name: name, Raw: []byte(raw)}, ok
}

func (s *stored) List(resource schema.GroupVersionResource) ([]snapshot.Object, uint64) {
	var all []snapshot.Object
	for _, name := range []string{"db", "done", "gen", "web"} {
		all = append(all, snapshot.Object{Namespace: "default", Name: name, UID: "uid-" + "", Raw: []byte(s.objects[resource][name])})
	}
	return all, 1
}

func (s *stored) InStep(schema.GroupVersionResource) (time.Time, bool) {
	return s.inStep, !s.inStep.IsZero()
}

func (s *stored) Trusted() (bool, string) { return s.doubt == "", s.doubt }

func newHolding(t *testing.T, objects *stored, mode v1alpha1.OfflineAttachedVolumes) (*Holding, *testclock.FakePassiveClock) {
	clock := testclock.NewFakePassiveClock(time.Unix(1000, 0))
	h := New(clock, filepath.Join(t.TempDir(), "run", "in-step"))
	h.Begin(objects, func() v1alpha1.Offline { return v1alpha1.Offline{AttachedVolumes: mode} })
	return h, clock
}

func (h *Holding) asks(objects *stored, name string) bool {
	item := &collection.Item{Name: name, Raw: []byte(objects.objects[attachments][name])}
	return h.Why(attachments, item) != ""
}

func TestWhy(t *testing.T) {
	cases := map[string]struct {
		mode       v1alpha1.OfflineAttachedVolumes
		change     func(*stored)
		attachment string
		want       bool
	}{
		"a volume of one node waits":                           {attachment: "csi-1", want: true},
		"a volume of many nodes does not":                      {attachment: "csi-2"},
		"not when the policy says Start":                       {attachment: "csi-1", mode: v1alpha1.AttachedVolumesStart},
		"not once the mirror was in step":                      {attachment: "csi-1", change: func(s *stored) { s.inStep = time.Unix(1001, 0) }},
		"what the mirror did by a clock in the past counts":    {attachment: "csi-1", change: func(s *stored) { s.inStep = time.Unix(1, 0) }},
		"a mirror that was never in step before it was either": {attachment: "csi-1", change: func(s *stored) { s.inStep = time.Time{} }, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := newStored()
			h, _ := newHolding(t, objects, tc.mode)
			if tc.change != nil {
				tc.change(objects)
			}
			if got := h.asks(objects, tc.attachment); got != tc.want {
				t.Errorf("held %v, want %v", got, tc.want)
			}
			if why := h.Why(claims, &collection.Item{Name: "data"}); why != "" {
				t.Errorf("a claim is held: %s", why)
			}
		})
	}
}

func TestAnAgentThatIsRestartedKnowsThatTheMirrorWasInStep(t *testing.T) {
	objects := newStored()
	h, clock := newHolding(t, objects, "")
	objects.inStep = time.Unix(1001, 0)
	if h.asks(objects, "csi-1") {
		t.Fatal("held although in step")
	}
	again := New(clock, h.marker)
	again.Begin(objects, h.policy)
	if again.asks(objects, "csi-1") {
		t.Error("held again in the same boot")
	}
	if info, err := os.Stat(h.marker); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("marker %v, %v", info, err)
	}
	next := New(clock, filepath.Join(t.TempDir(), "in-step"))
	next.Begin(objects, h.policy)
	if !next.asks(objects, "csi-1") {
		t.Error("not held in the next boot")
	}
}

func TestWhatIsHeldIsTold(t *testing.T) {
	objects := newStored()
	h, clock := newHolding(t, objects, "")
	step := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	check := func(when string, pods []string, findings []string) {
		t.Helper()
		var gotPods, gotFindings []string
		for _, pod := range h.Pods() {
			gotPods = append(gotPods, pod.Name+" "+pod.Claim)
		}
		for _, f := range h.Findings() {
			gotFindings = append(gotFindings, string(f.Severity)+" "+f.Reason+" "+f.Pod)
			if f.Message == "" {
				t.Errorf("%s: finding without a message: %+v", when, f)
			}
		}
		if diff := cmp.Diff(pods, gotPods); diff != "" {
			t.Errorf("%s: pods %s", when, diff)
		}
		if diff := cmp.Diff(findings, gotFindings); diff != "" {
			t.Errorf("%s: findings %s", when, diff)
		}
	}
	check("before kubelet asks", nil, nil)
	h.asks(objects, "csi-1")
	h.asks(objects, "csi-2")
	step(noticed - time.Second)
	check("while the mirror may come any moment", nil, nil)
	step(time.Second)
	held := []string{"default/db data", "default/gen gen-scratch"}
	told := []string{"BlocksPod AttachedVolumeNotSynced default/db", "BlocksPod AttachedVolumeNotSynced default/gen"}
	check("while it is held", held, told)
	objects.inStep = time.Unix(2000, 0)
	check("when it is over nobody is held, and it is still told", nil, told)
	step(shown)
	check("for a while", nil, nil)

	objects.doubt = "pods in kubelet's directory that the list lacks"
	check("a list that nobody was refused", nil, nil)
	h.ListRefused()
	check("a list that kubelet was refused", nil, []string{"BlocksNode PodListNotServed "})
	objects.doubt = ""
	check("which is told for a while too", nil, []string{"BlocksNode PodListNotServed "})
	step(shown)
	check("and then no more", nil, nil)
}
