package snapshot

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	services   = corev1.SchemeGroupVersion.WithResource("services")
	allPods    = Scope{Resource: Pods}
	allService = Scope{Resource: services}
)

func object(namespace, name, uid string, version int) Object {
	return Object{
		Namespace: namespace, Name: name, UID: types.UID(uid), ResourceVersion: strconv.Itoa(version),
		Raw: fmt.Appendf(nil, `{"metadata":{"name":%q,"resourceVersion":"%d"}}`, name, version),
	}
}

func secret(name string) Scope { return Scope{Secrets, "shop", name} }

// brief tells an event in a line.
func brief(e Event) string {
	return fmt.Sprintf("%s %s %s/%s uid=%s rv=%s v=%d", e.Type, e.Resource.Resource, e.Object.Namespace, e.Object.Name, e.Object.UID, e.Object.ResourceVersion, e.Version)
}

func TestEvents(t *testing.T) {
	cases := map[string]struct {
		do   func(*testing.T, *Objects)
		want []string
	}{
		"a list comes in the order of its versions": {
			do: func(t *testing.T, o *Objects) {
				must(t, o.Sync(allService, "20", []Object{object("a", "x", "1", 12), object("a", "y", "2", 7)}))
			},
			want: []string{"Added services a/y uid=2 rv=7 v=7", "Added services a/x uid=1 rv=12 v=12"},
		},
		"the same list again says nothing": {
			do: func(t *testing.T, o *Objects) {
				must(t, o.Sync(allService, "20", []Object{object("a", "x", "1", 12)}))
				must(t, o.Sync(allService, "30", []Object{object("a", "x", "1", 12)}))
				must(t, o.Apply(allService, Modified, object("a", "x", "1", 31)))
			},
			want: []string{"Added services a/x uid=1 rv=12 v=12", "Modified services a/x uid=1 rv=31 v=31"},
		},
		"what a list lacks is deleted first": {
			do: func(t *testing.T, o *Objects) {
				must(t, o.Sync(allPods, "20", []Object{object("a", "x", "1", 12)}))
				must(t, o.Sync(allPods, "30", []Object{object("a", "y", "2", 25)}))
			},
			want: []string{"Added pods a/x uid=1 rv=12 v=12", "Deleted pods a/x uid=1 rv=12 v=21", "Added pods a/y uid=2 rv=25 v=25"},
		},
		"a pod of the same name and another UID takes the old one away": {
			do: func(t *testing.T, o *Objects) {
				must(t, o.Sync(allPods, "20", []Object{object("a", "x", "1", 12)}))
				must(t, o.Apply(allPods, Modified, object("a", "x", "2", 25)))
			},
			want: []string{"Added pods a/x uid=1 rv=12 v=12", "Deleted pods a/x uid=1 rv=12 v=21", "Added pods a/x uid=2 rv=25 v=25"},
		},
		"a deletion has the version at which it happened": {
			do: func(t *testing.T, o *Objects) {
				must(t, o.Sync(allPods, "20", []Object{object("a", "x", "1", 12)}))
				must(t, o.Apply(allPods, Deleted, object("a", "x", "1", 40)))
				must(t, o.Apply(allPods, Deleted, object("a", "x", "1", 40)))
			},
			want: []string{"Added pods a/x uid=1 rv=12 v=12", "Deleted pods a/x uid=1 rv=40 v=40"},
		},
		"versions rise also when watches of single objects cross": {
			do: func(t *testing.T, o *Objects) {
				must(t, o.Sync(secret("a"), "5", []Object{object("shop", "a", "1", 5)}))
				must(t, o.Sync(secret("b"), "3", []Object{object("shop", "b", "2", 3)}))
			},
			want: []string{"Added secrets shop/a uid=1 rv=5 v=5", "Added secrets shop/b uid=2 rv=3 v=6"},
		},
		"an older answer is ignored": {
			do: func(t *testing.T, o *Objects) {
				must(t, o.Sync(allService, "20", []Object{object("a", "x", "1", 12)}))
				must(t, o.Apply(allService, Modified, object("a", "x", "1", 11)))
			},
			want: []string{"Added services a/x uid=1 rv=12 v=12"},
		},
		"forgetting a scope leaves what another has": {
			do: func(t *testing.T, o *Objects) {
				must(t, o.Sync(secret("a"), "5", []Object{object("shop", "a", "1", 5)}))
				must(t, o.Sync(secret("b"), "6", []Object{object("shop", "b", "2", 6)}))
				must(t, o.Forget(secret("a")))
			},
			want: []string{"Added secrets shop/a uid=1 rv=5 v=5", "Added secrets shop/b uid=2 rv=6 v=6", "Forgotten secrets shop/a uid=1 rv=5 v=7"},
		},
		"a reset begins the line anew": {
			do: func(t *testing.T, o *Objects) {
				must(t, o.Sync(allService, "20", []Object{object("a", "x", "1", 12)}))
				must(t, o.Reset(services, "8"))
				must(t, o.Sync(allService, "8", []Object{object("a", "x", "1", 6)}))
			},
			want: []string{"Added services a/x uid=1 rv=12 v=12", "Reset services / uid= rv= v=8", "Modified services a/x uid=1 rv=6 v=9"},
		},
		"an overlay takes the next version": {
			do: func(t *testing.T, o *Objects) {
				must(t, o.Sync(allPods, "20", []Object{object("a", "x", "1", 12)}))
				version, err := o.PutOverlay(OverlayKey{Pods, "a", "x"}, []byte("status"))
				must(t, err)
				if version != 21 {
					t.Errorf("version %d, want 21", version)
				}
				_, err = o.DeleteOverlay(OverlayKey{Pods, "a", "x"})
				must(t, err)
				_, err = o.DeleteOverlay(OverlayKey{Pods, "a", "x"})
				must(t, err)
			},
			want: []string{"Added pods a/x uid=1 rv=12 v=12", "Overlaid pods a/x uid= rv= v=21", "Overlaid pods a/x uid= rv= v=22"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := mustOpen(t, t.TempDir()).Objects()
			var got []string
			o.Subscribe(func(e Event) { got = append(got, brief(e)) })
			tc.do(t, o)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjectsAreThereAfterAReopen(t *testing.T) {
	dir := t.TempDir()
	store := mustOpen(t, dir)
	o := store.Objects()
	must(t, o.Sync(allPods, "20", []Object{object("b", "x", "1", 12), object("a", "y", "2", 13), object("a", "z", "3", 14)}))
	must(t, o.Apply(allPods, Deleted, object("a", "z", "3", 21)))
	must(t, o.Sync(secret("gone"), "22", nil))
	_, err := o.PutOverlay(OverlayKey{Pods, "b", "x"}, []byte("status"))
	must(t, err)
	key := TokenKey{PodUID: "1", Namespace: "b", ServiceAccount: "default", ExpirationSeconds: 3607}
	must(t, o.PutToken(key, Token{Token: "t", Issued: noon, Expires: noon.Add(time.Hour)}))
	o.Remember("review", "k", []byte("allowed"))
	o.MarkInStep(Pods, noon)
	must(t, store.Close())

	o = mustOpen(t, dir).Objects()
	objects, version := o.List(Pods)
	want := []Object{object("a", "y", "2", 13), object("b", "x", "1", 12)}
	if diff := cmp.Diff(want, objects); diff != "" || version != 22 {
		t.Errorf("version %d, want 22; pods (-want +got):\n%s", version, diff)
	}
	if got, ok := o.Get(Pods, "a", "y"); !ok || string(got.Raw) != string(want[0].Raw) {
		t.Errorf("Get: %v %s", ok, got.Raw)
	}
	for scope, want := range map[Scope]bool{
		allPods: true, {Pods, "a", ""}: true, {Pods, "a", "y"}: true, secret("gone"): true, secret("other"): false, allService: false,
	} {
		if got := o.Known(scope); got != want {
			t.Errorf("Known(%+v) = %v, want %v", scope, got, want)
		}
	}
	if got, ok := o.Overlay(OverlayKey{Pods, "b", "x"}); !ok || string(got) != "status" {
		t.Errorf("overlay %q", got)
	}
	if got, ok := o.Token(key); !ok || got.Token != "t" || !got.Expires.Equal(noon.Add(time.Hour)) {
		t.Errorf("token %+v", got)
	}
	if got := o.Remembered("review"); string(got["k"]) != "allowed" {
		t.Errorf("remembered %q", got)
	}
	if got, ok := o.InStep(Pods); !ok || !got.Equal(noon) {
		t.Errorf("in step at %v, want %v", got, noon)
	}
	if trusted, reason := o.Trusted(); !trusted {
		t.Errorf("the list is held: %s", reason)
	}
}

func TestWithTheLastOfAPodItsTokensGo(t *testing.T) {
	o := mustOpen(t, t.TempDir()).Objects()
	must(t, o.Sync(allPods, "20", []Object{object("a", "x", "1", 12), object("a", "y", "2", 13)}))
	for _, uid := range []types.UID{"1", "2"} {
		must(t, o.PutToken(TokenKey{PodUID: uid, Namespace: "a", ServiceAccount: "default"}, Token{Token: "t"}))
	}
	must(t, o.Apply(allPods, Deleted, object("a", "x", "1", 21)))
	must(t, o.PutToken(TokenKey{PodUID: "1", Namespace: "a", ServiceAccount: "late"}, Token{Token: "t"}))
	if got := o.Tokens(); len(got) != 1 {
		t.Errorf("tokens %v, want that of pod 2 alone", got)
	}
}

// What subscribers hear of has to be on the disk by then, where it must be.
func TestWhatIsDurableBeforeItIsHeardOf(t *testing.T) {
	store := mustOpen(t, t.TempDir())
	o := store.Objects()
	must(t, o.Sync(allPods, "20", []Object{object("a", "x", "1", 12)}))
	check := func(event string, dirty bool) {
		t.Helper()
		told := 0
		cancel := o.Subscribe(func(Event) {
			told++
			if got := store.durable.Due(); got != dirty {
				t.Errorf("%s: unwritten changes when told: %v, want %v", event, got, dirty)
			}
		})
		defer cancel()
		switch event {
		case "pod added":
			must(t, o.Apply(allPods, Added, object("a", "y", "2", 30)))
		case "pod modified":
			must(t, o.Apply(allPods, Modified, object("a", "y", "2", 31)))
		case "pod deleted":
			must(t, o.Apply(allPods, Deleted, object("a", "x", "1", 32)))
		case "first secret":
			must(t, o.Sync(secret("s"), "40", []Object{object("shop", "s", "9", 33)}))
		}
		if told != 1 {
			t.Errorf("%s: told %d times, want once", event, told)
		}
	}
	check("pod added", false)
	check("pod modified", true)
	check("pod deleted", false)
	check("first secret", false)
}

func TestAHeartbeatAloneIsNotWritten(t *testing.T) {
	node := func(version, heartbeat, ready string) Object {
		return Object{Name: "edge", UID: "n", ResourceVersion: version, Raw: fmt.Appendf(nil,
			`{"metadata":{"resourceVersion":%q},"status":{"conditions":[{"type":"Ready","status":%q,"lastHeartbeatTime":%q}]}}`, version, ready, heartbeat)}
	}
	store := mustOpen(t, t.TempDir())
	o := store.Objects()
	must(t, o.Sync(Scope{Resource: Nodes}, "1", []Object{node("1", "12:00", "True")}))
	must(t, o.Apply(Scope{Resource: Nodes}, Modified, node("2", "12:05", "True")))
	if store.durable.Due() {
		t.Error("a heartbeat is on its way to the disk")
	}
	must(t, o.Apply(Scope{Resource: Nodes}, Modified, node("3", "12:06", "False")))
	if !store.durable.Due() {
		t.Error("a change is not on its way to the disk")
	}
}

func TestManyWritersAndReaders(t *testing.T) {
	o := mustOpen(t, t.TempDir()).Objects()
	var mu sync.Mutex
	last := map[schema.GroupVersionResource]uint64{}
	content := map[string]bool{}
	o.Subscribe(func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Version <= last[e.Resource] {
			t.Errorf("version %d of %s after %d", e.Version, e.Resource.Resource, last[e.Resource])
		}
		last[e.Resource] = e.Version
		key := e.Object.Namespace + "/" + e.Object.Name
		if e.Type == Deleted {
			delete(content, key)
		} else {
			content[key] = true
		}
	})
	var running sync.WaitGroup
	for writer := range 8 {
		running.Go(func() {
			name := "w" + strconv.Itoa(writer)
			scope := Scope{Pods, name, ""}
			must(t, o.Sync(scope, "1", nil))
			for i := range 12 {
				must(t, o.Apply(scope, Added, object(name, strconv.Itoa(i), name+strconv.Itoa(i), writer+8*i+1)))
				o.List(Pods)
				o.MarkInStep(Pods, noon)
				if i%3 == 0 {
					must(t, o.Apply(scope, Deleted, object(name, strconv.Itoa(i), name+strconv.Itoa(i), writer+8*i+2)))
				}
			}
		})
	}
	running.Wait()
	objects, version := o.List(Pods)
	if len(objects) != 8*8 || len(content) != len(objects) || version != last[Pods] {
		t.Errorf("%d pods at version %d, events say %d pods at version %d; want %d pods", len(objects), version, len(content), last[Pods], 8*8)
	}
}

func TestWhatIsNotInTheScopeIsRefused(t *testing.T) {
	o := mustOpen(t, t.TempDir()).Objects()
	if err := o.Sync(secret("a"), "5", []Object{object("shop", "b", "1", 5)}); err == nil || !strings.Contains(err.Error(), "shop/b") {
		t.Errorf("got error %v, want one that names the object", err)
	}
	if o.Known(secret("a")) {
		t.Error("the scope is known after a list that was refused")
	}
}

func TestAClosedStoreTakesNothing(t *testing.T) {
	store, err := Open(t.TempDir(), logr.Discard())
	must(t, err)
	must(t, store.Close())
	if err := store.Objects().Sync(allPods, "1", nil); err == nil {
		t.Error("no error")
	}
}
