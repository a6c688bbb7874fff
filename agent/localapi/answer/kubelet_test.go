package answer

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/snapshot"
)

func TestOnlyKubeletGetsWhatIsChangedForIt(t *testing.T) {
	const kubelet, other = "User-Agent: kubelet/v1.37.2 (linux/amd64)", "User-Agent: kubectl/v1.37.2"
	cases := map[string]struct {
		path   string
		header []string
		want   bool
	}{
		"kubelet's list": {path: allPods, header: []string{kubelet}, want: true},
		"the list of a kubelet in something larger": {path: allPods, header: []string{"User-Agent: k3s/v1.37.2", "Process: kubelet"}, want: true},
		"another program of the node":               {path: allPods, header: []string{other}},
		"a pod that says so":                        {path: allPods, header: []string{kubelet, "Authorization: Bearer x"}},
		"kubelet's get of one":                      {path: "/api/v1/namespaces/default/pods/web-1", header: []string{kubelet}},
		"kubelet's configmap":                       {path: oneConfig + "settings", header: []string{kubelet}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, CutOff, held...).fill()
			r.Edit = func(schema.GroupVersionResource, bool) func(*collection.Item) []byte {
				return func(*collection.Item) []byte { return []byte(`{"changed":true}`) }
			}
			_, body, _ := r.get(t, tc.path, tc.header...)
			if got := strings.Contains(body, "changed"); got != tc.want {
				t.Errorf("changed %v, want %v: %s", got, tc.want, body)
			}
		})
	}
	t.Run("when kubelet has its pods is told", func(t *testing.T) {
		r := newRig(t, CutOff, held...).fill()
		given := make(chan schema.GroupVersionResource, 9)
		r.Listed = func(resource schema.GroupVersionResource) { given <- resource }
		r.get(t, allPods, other)
		r.get(t, "/api/v1/namespaces/default/pods/web-1", kubelet)
		if len(given) != 0 {
			t.Error("told of what is not kubelet's list")
		}
		r.get(t, allPods, kubelet)
		next := r.follow(t, allPods+"&watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", kubelet)
		for range 4 {
			next()
		}
		for _, how := range []string{"list", "watch"} {
			select {
			case resource := <-given:
				if resource != snapshot.Pods {
					t.Errorf("told of %s", resource)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("not told of kubelet's %s", how)
			}
		}
	})
	t.Run("kubelet's watch", func(t *testing.T) {
		r := newRig(t, CutOff, held...).fill()
		lists := []bool{}
		r.Edit = func(_ schema.GroupVersionResource, list bool) func(*collection.Item) []byte {
			lists = append(lists, list)
			return func(item *collection.Item) []byte { return []byte(`{"metadata":{"name":"changed"}}`) }
		}
		next := r.follow(t, allPods+"&watch=1", kubelet)
		if got := next(); got != "ADDED changed" {
			t.Error(got)
		}
		next = r.follow(t, allPods+"&watch=1&resourceVersion="+listVersion(t, r), kubelet)
		r.store.put(pods, podJSON("web-1", "300", ""))
		if got := next(); got != "MODIFIED changed" {
			t.Error(got)
		}
		if len(lists) != 2 || !lists[0] || lists[1] {
			t.Errorf("read from the start: %v", lists)
		}
	})
}

func TestWhatIsHeldBack(t *testing.T) {
	attachments := schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
	nodesOfCSI := schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}
	const attachment, csiNode = "/apis/storage.k8s.io/v1/volumeattachments/va", "/apis/storage.k8s.io/v1/csinodes/edge-1"
	r := newRig(t, CutOff, snapshot.Scope{Resource: attachments, Name: "va"}, snapshot.Scope{Resource: nodesOfCSI, Name: "edge-1"})
	r.store.put(attachments, `{"metadata":{"name":"va","resourceVersion":"5"}}`)
	why := "it may be attached elsewhere"
	r.Held = func(schema.GroupVersionResource, *collection.Item) string { return why }
	if code, body, _ := r.get(t, attachment); code != http.StatusServiceUnavailable || !strings.Contains(body, why) {
		t.Errorf("%d %s", code, body)
	}
	why = ""
	if code, body, _ := r.get(t, attachment); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	if code, body, _ := r.get(t, csiNode); code != http.StatusServiceUnavailable {
		t.Errorf("kubelet exits when its CSINode is not found and cannot be made: %d %s", code, body)
	}
}
