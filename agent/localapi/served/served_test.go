package served

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	out, _ := json.Marshal(value)
	return string(out)
}

// edits after a boot that is cut off.
func edits() (*Edits, *time.Time) {
	now := time.Unix(1000, 0)
	return &Edits{
		Policy: func() v1alpha1.Offline { return v1alpha1.Offline{} },
		CutOff: func() bool { return true },
		Image:  func(_ types.UID, _, image string) bool { return image == "here" },
		Pods:   func() []types.UID { return []types.UID{"old"} },
		Now:    func() time.Time { return now },
		Boot:   true,
	}, &now
}

func TestNode(t *testing.T) {
	const (
		plain   = `{"status":{"conditions":[{"type":"DiskPressure","status":"False"},{"type":"Ready","status":"True","reason":"x"}]}}`
		unknown = `{"status":{"conditions":[{"type":"DiskPressure","status":"False"},{"type":"Ready","status":"Unknown","reason":"x"}]}}`
		tainted = `{"spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute"},{"key":"node.kubernetes.io/unreachable","effect":"NoSchedule"},{"key":"own","effect":"NoExecute"}]}}`
	)
	cases := map[string]struct {
		change     func(*Edits)
		node, want string
	}{
		"not ready until kubelet says so":      {node: plain, want: unknown},
		"ready once it has":                    {change: func(e *Edits) { e.NodeWritten([]byte(plain)) }, node: plain, want: plain},
		"not ready while it says it is not":    {change: func(e *Edits) { e.NodeWritten([]byte(unknown)) }, node: plain, want: unknown},
		"as it is when kubelet runs already":   {change: func(e *Edits) { e.Boot = false }, node: plain, want: plain},
		"a node without conditions":            {node: `{"metadata":{}}`, want: `{"metadata":{}}`},
		"without the taints of a lost node":    {node: tainted, want: `{"spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoSchedule"},{"key":"own","effect":"NoExecute"}]}}`},
		"with them when the cloud is heard":    {change: func(e *Edits) { e.CutOff = func() bool { return false } }, node: tainted, want: tainted},
		"without any when there are no others": {node: `{"spec":{"podCIDR":"x","taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoExecute"}]}}`, want: `{"spec":{"podCIDR":"x"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, _ := edits()
			if tc.change != nil {
				tc.change(e)
			}
			got := e.For(snapshot.Nodes, true)(&collection.Item{Raw: []byte(tc.node)})
			if diff := cmp.Diff(compact(t, []byte(tc.want)), compact(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPods(t *testing.T) {
	container := func(content string) string { return `{"spec":{"containers":[{` + content + `}]}}` }
	const http10 = `"readinessProbe":{"httpGet":{"port":80},"periodSeconds":10,"timeoutSeconds":1,"successThreshold":1,"failureThreshold":3}`
	const http1 = `"readinessProbe":{"httpGet":{"port":80},"periodSeconds":1,"timeoutSeconds":1,"successThreshold":1,"failureThreshold":30}`
	cases := map[string]struct {
		change    func(*Edits, *time.Time)
		pod, want string
		uid       types.UID
	}{
		"a probe is as fast as its timeout": {pod: container(http10), want: container(http1)},
		"thresholds keep their seconds": {
			pod:  container(`"readinessProbe":{"tcpSocket":{},"periodSeconds":10,"timeoutSeconds":3,"successThreshold":2,"failureThreshold":1}`),
			want: container(`"readinessProbe":{"tcpSocket":{},"periodSeconds":3,"timeoutSeconds":3,"successThreshold":7,"failureThreshold":4}`),
		},
		"a probe that says nothing has the defaults": {
			pod: container(`"readinessProbe":{"grpc":{"port":1}}`), want: container(`"readinessProbe":{"grpc":{"port":1},"periodSeconds":1,"failureThreshold":30}`),
		},
		"a probe that runs a program":      {pod: container(`"readinessProbe":{"exec":{},"periodSeconds":10}`), want: container(`"readinessProbe":{"exec":{},"periodSeconds":10}`)},
		"a probe that is fast already":     {pod: container(`"readinessProbe":{"httpGet":{},"periodSeconds":1,"timeoutSeconds":1}`), want: container(`"readinessProbe":{"httpGet":{},"periodSeconds":1,"timeoutSeconds":1}`)},
		"other probes":                     {pod: container(`"livenessProbe":{"httpGet":{},"periodSeconds":10}`), want: container(`"livenessProbe":{"httpGet":{},"periodSeconds":10}`)},
		"an image that is here":            {pod: container(`"image":"here","imagePullPolicy":"Always"`), want: container(`"image":"here","imagePullPolicy":"IfNotPresent"`)},
		"an image that is not":             {pod: container(`"image":"away","imagePullPolicy":"Always"`), want: container(`"image":"away","imagePullPolicy":"Always"`)},
		"a policy that asks nobody anyway": {pod: container(`"image":"here","imagePullPolicy":"Never"`), want: container(`"image":"here","imagePullPolicy":"Never"`)},
		"a pod that came later":            {uid: "new", pod: container(http10), want: container(http10)},
		"probes as written": {
			change: func(e *Edits, _ *time.Time) {
				e.Policy = func() v1alpha1.Offline { return v1alpha1.Offline{ReadinessProbes: v1alpha1.ReadinessProbesAsWritten} }
			},
			pod: container(http10), want: container(http10),
		},
		"images as written": {
			change: func(e *Edits, _ *time.Time) {
				e.Policy = func() v1alpha1.Offline { return v1alpha1.Offline{ImagePullPolicy: v1alpha1.ImagePullAsWritten} }
			},
			pod: container(`"image":"here","imagePullPolicy":"Always"`), want: container(`"image":"here","imagePullPolicy":"Always"`),
		},
		"the registry is asked when the boot was not cut off": {
			change: func(e *Edits, _ *time.Time) { e.CutOff = func() bool { return false } },
			pod:    container(`"image":"here","imagePullPolicy":"Always"`), want: container(`"image":"here","imagePullPolicy":"Always"`),
		},
		"and still when it is cut off later": {
			change: func(e *Edits, _ *time.Time) {
				e.CutOff = func() bool { return false }
				e.For(snapshot.Pods, true)
				e.CutOff = func() bool { return true }
			},
			pod: container(`"image":"here","imagePullPolicy":"Always"`), want: container(`"image":"here","imagePullPolicy":"Always"`),
		},
		"kubelet lists again at once": {
			change: func(e *Edits, now *time.Time) { e.For(snapshot.Pods, true); *now = now.Add(time.Second) },
			pod:    container(http10), want: container(http1),
		},
		"kubelet was restarted": {
			change: func(e *Edits, now *time.Time) { e.For(snapshot.Pods, true); *now = now.Add(time.Hour) },
			pod:    container(http10), want: container(http10),
		},
		"an agent that starts beside a kubelet that runs": {
			change: func(e *Edits, _ *time.Time) { e.Boot = false },
			pod:    container(http10), want: container(http10),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, now := edits()
			if tc.change != nil {
				tc.change(e, now)
			}
			item := &collection.Item{UID: "old", Raw: []byte(tc.pod)}
			if tc.uid != "" {
				item.UID = tc.uid
			}
			got := item.Raw
			if change := e.For(snapshot.Pods, true); change != nil {
				got = change(item)
			}
			if diff := cmp.Diff(compact(t, []byte(tc.want)), compact(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKubeletLooksAtAPodOnceItRuns(t *testing.T) {
	const probe = `"readinessProbe":{"httpGet":{"port":80},"periodSeconds":10,"timeoutSeconds":1,"failureThreshold":3}`
	pod := func(container, status string) *collection.Item {
		return &collection.Item{UID: "old", Raw: []byte(`{"spec":{"containers":[{"name":"a",` + container + `}]},"status":{"containerStatuses":[` + status + `]}}`)}
	}
	const (
		waits   = `{"name":"a","ready":false,"state":{"waiting":{}}}`
		runs    = `{"name":"a","ready":false,"state":{"running":{}}}`
		isReady = `{"name":"a","ready":true,"state":{"running":{}}}`
	)
	cases := map[string]struct {
		container string
		// statuses as they are served one after the other, and the threshold of each.
		statuses []string
		want     []string
	}{
		"it was Ready before the boot, is made, runs, and is Ready": {
			container: probe, statuses: []string{isReady, waits, runs, isReady, runs}, want: []string{"30", "30", "31", "31", "31"},
		},
		"it was not Ready before the boot": {container: probe, statuses: []string{runs, waits, runs}, want: []string{"31", "31", "31"}},
		"its probe runs a program": {
			container: `"readinessProbe":{"exec":{},"failureThreshold":3}`, statuses: []string{waits, runs}, want: []string{"3", "3"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, _ := edits()
			change := e.For(snapshot.Pods, true)
			var got []string
			for _, status := range tc.statuses {
				var served struct {
					Spec struct {
						Containers []struct {
							ReadinessProbe struct{ FailureThreshold json.Number }
						}
					}
				}
				if err := json.Unmarshal(change(pod(tc.container, status)), &served); err != nil {
					t.Fatal(err)
				}
				got = append(got, served.Spec.Containers[0].ReadinessProbe.FailureThreshold.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNothingElseIsChanged(t *testing.T) {
	e, _ := edits()
	if e.For(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, true) != nil {
		t.Error("secrets are changed")
	}
	item := &collection.Item{UID: "old", Raw: []byte(`{ "spec" : {"x":1}}`)}
	if got := e.For(snapshot.Pods, true)(item); !slices.Equal(got, item.Raw) {
		t.Errorf("an object without anything to change came out as %s", got)
	}
}
