package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/watch"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/localapi/collection"
	"rekindle.edge/api/v1alpha1"
)

// node has a holder, and a runtime that makes sandboxes.
type node struct {
	*testing.T
	*Holder
	began time.Time

	mu     sync.Mutex
	log    []string // pods whose sandbox was made, and when
	failed error    // what the runtime fails with
	tried  int      // sandboxes that the runtime was asked for
}

// onNode runs a story in time of its own. The plan is given by the story.
func story(t *testing.T, change func(*Options), tell func(*node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &node{T: t, began: time.Now()}
		options := Options{Log: logr.Discard(), BootID: "boot", Dir: t.TempDir(), Parallel: 2, Boot: func() time.Duration { return time.Since(n.began) + time.Second }}
		if change != nil {
			change(&options)
		}
		n.Holder = New(options)
		tell(n)
		n.Stop()
	})
}

func (n *node) object(pod string, labels map[string]string) []byte {
	namespace, plain, _ := strings.Cut(pod, "/")
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": plain, "uid": "uid-" + plain, "labels": labels},
		"status": map[string]any{
			"conditions":        []any{map[string]string{"type": "Ready", "status": "True"}},
			"containerStatuses": []any{map[string]string{"containerID": "containerd://id-" + plain}},
		},
	})
	if err != nil {
		n.Fatal(err)
	}
	return raw
}

func (n *node) events(kind watch.EventType, pods ...string) []collection.Event {
	var events []collection.Event
	for _, pod := range pods {
		namespace, plain, _ := strings.Cut(pod, "/")
		events = append(events, collection.Event{Type: kind, Item: &collection.Item{
			Namespace: namespace, Name: plain, Raw: n.object(pod, map[string]string{"stage": namespace}),
		}})
	}
	return events
}

// list gives the node's pods; those of namespace one are of stage one.
func (n *node) list(pods ...string) { n.takePods(true, n.events(watch.Added, pods...)) }

// asks for a pod's sandbox, as kubelet does, and gives a function that waits for the answer.
func (n *node) asks(pod string, change ...func(*runtimeapi.PodSandboxConfig)) func() error {
	namespace, plain, _ := strings.Cut(pod, "/")
	config := &runtimeapi.PodSandboxConfig{
		Metadata:    &runtimeapi.PodSandboxMetadata{Namespace: namespace, Name: plain, Uid: "uid-" + plain},
		Annotations: map[string]string{sourceAnnotation: sourceAPI},
	}
	for _, c := range change {
		c(config)
	}
	request, err := proto.Marshal(&runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		n.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(n.Context(), 4*time.Minute)
		defer cancel()
		_, err := n.RunPodSandbox(ctx, request, func(_ context.Context, got []byte) ([]byte, error) {
			if string(got) != string(request) {
				return nil, errors.New("another request")
			}
			return nil, n.make(plain)
		})
		answer <- err
	}()
	synctest.Wait()
	return func() error { return <-answer }
}

func (n *node) make(pod string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tried++
	if n.failed != nil {
		return n.failed
	}
	n.log = append(n.log, fmt.Sprintf("%s %v", pod, time.Since(n.began)))
	return nil
}

func (n *node) fails(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed = err
}

// want the sandboxes that were made, and no error.
func (n *node) want(answers []func() error, want ...string) {
	n.Helper()
	for _, answer := range answers {
		if err := answer(); err != nil {
			n.Errorf("refused: %v", err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.Sort(n.log)
	if diff := cmp.Diff(want, n.log); diff != "" {
		n.Errorf("made (-want +got):\n%s", diff)
	}
}

func all(answers ...func() error) []func() error { return answers }

func oneStage(timeout int32) v1alpha1.StartupOrdering {
	s := stage("one")
	s.TimeoutSeconds = timeout
	return v1alpha1.StartupOrdering{Stages: []v1alpha1.Stage{s}}
}

func TestHolder(t *testing.T) {
	const noNetwork = `failed to setup network for sandbox "1": plugin type="flannel" failed (add): no subnet.env`
	hostNetwork := func(c *runtimeapi.PodSandboxConfig) {
		c.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}}
	}
	manifest := func(c *runtimeapi.PodSandboxConfig) {
		c.Annotations[sourceAnnotation] = "file"
		c.Metadata.Uid = "hash"
	}
	stories := map[string]struct {
		options func(*Options)
		tell    func(*node)
	}{
		"pods of a later stage wait, and their calls go on by themselves": {tell: func(n *node) {
			n.Begin(oneStage(60), nil, nil)
			n.list("one/a", "two/b")
			b, a := n.asks("two/b"), n.asks("one/a")
			time.Sleep(time.Second)
			n.ContainerStarted("id-a")
			n.want(all(a, b), "a 0s", "b 2s")
		}},
		"the stage's timeout needs nothing to happen": {tell: func(n *node) {
			n.Begin(oneStage(10), nil, nil)
			n.list("one/a", "two/b")
			n.want(all(n.asks("two/b")), "b 10s")
		}},
		"a pod that is not on the list passes at once": {tell: func(n *node) {
			n.Begin(oneStage(10), nil, nil)
			n.list("one/a")
			n.want(all(n.asks("two/new")), "new 0s")
		}},
		"a pod that is held back elsewhere holds no stage": {
			options: func(o *Options) {
				begun := time.Now()
				o.HeldBack = func() []string {
					if time.Since(begun) > 5*time.Second {
						return []string{"uid-a"}
					}
					return nil
				}
			},
			tell: func(n *node) {
				n.Begin(oneStage(60), nil, nil)
				n.list("one/a", "two/b")
				n.want(all(n.asks("two/b")), "b 6s")
			},
		},
		"the first calls wait for a plan": {tell: func(n *node) {
			b := n.asks("two/b")
			time.Sleep(time.Second)
			n.Begin(oneStage(10), nil, nil)
			synctest.Wait()
			n.list("one/a", "two/b")
			n.want(all(b), "b 11s")
		}},
		"without a plan they pass": {tell: func(n *node) {
			n.want(all(n.asks("two/b")), "b 3s")
		}},
		"the end of the recovery lets everything go, for the whole boot": {tell: func(n *node) {
			n.Begin(oneStage(60), nil, nil)
			n.list("one/a", "two/b")
			b := n.asks("two/b")
			time.Sleep(time.Second)
			n.Pass()
			n.want(all(b), "b 1s")
			n.Holder = New(n.Options)
			n.Begin(oneStage(60), nil, nil)
			n.list("one/a", "two/b")
			n.want(all(n.asks("two/b")), "b 1s", "b 1s")
		}},
		"an order that cannot be read holds nobody": {tell: func(n *node) {
			broken := oneStage(60)
			broken.Stages[0].Pods[0].LabelSelector.MatchLabels = map[string]string{"!": "?"}
			n.Begin(broken, nil, nil)
			n.list("one/a", "two/b")
			n.want(all(n.asks("two/b")), "b 0s")
		}},
		"what was kept of this boot and cannot be read holds nobody": {
			options: func(o *Options) {
				if err := os.WriteFile(filepath.Join(o.Dir, stateFile), []byte("{damaged"), 0o600); err != nil {
					panic(err)
				}
			},
			tell: func(n *node) {
				n.want(all(n.asks("two/b")), "b 0s") // before there is a plan
				n.Begin(oneStage(60), nil, nil)
				n.list("one/a", "two/b")
				n.want(all(n.asks("two/b")), "b 0s", "b 0s")
			},
		},
		"a fault in the order holds nobody": {tell: func(n *node) {
			n.Begin(oneStage(60), nil, nil)
			n.list("one/a", "two/b")
			b := n.asks("two/b")
			n.do(func(time.Duration) { panic("fault") })
			n.want(all(b, n.asks("two/c")), "b 0s", "c 0s")
		}},
		"an agent that stops answers what it holds so that kubelet asks again": {tell: func(n *node) {
			n.Begin(oneStage(60), nil, nil)
			n.list("one/a", "two/b")
			b := n.asks("two/b")
			n.Stop()
			for _, answer := range all(b, n.asks("two/b")) {
				if err := answer(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "network is not ready") {
					n.Errorf("answered with %v", err)
				}
			}
			n.want(nil)
		}},
		"a call is answered before its deadline": {tell: func(n *node) {
			n.Begin(oneStage(600), nil, nil)
			n.list("one/a", "two/b")
			err := n.asks("two/b")()
			if took := time.Since(n.began); took != 4*time.Minute-makeTime || !strings.Contains(fmt.Sprint(err), "network is not ready") {
				n.Errorf("answered after %v with %v", took, err)
			}
		}},
		"a held pod that is deleted is let go at once": {tell: func(n *node) {
			n.Begin(oneStage(60), nil, nil)
			n.list("one/a", "two/b")
			b := n.asks("two/b")
			n.takePods(false, n.events(watch.Deleted, "two/b"))
			if err := b(); err == nil || time.Since(n.began) > 0 {
				n.Errorf("answered after %v with %v", time.Since(n.began), err)
			}
			// Kubelet may not know yet.
			if err := n.asks("two/b")(); err == nil {
				n.Error("made after it was deleted")
			}
			n.want(nil)
		}},
		"a pod that kubelet evicts, and every pod when the node shuts down, is let go at once": {tell: func(n *node) {
			n.Begin(oneStage(60), nil, nil)
			n.list("one/a", "two/b", "two/c")
			b, c := n.asks("two/b"), n.asks("two/c")
			n.Ended("uid-b", "kubelet has evicted it")
			errB := b()
			time.Sleep(time.Second)
			n.ShuttingDown()
			errC := c()
			if errB == nil || errC == nil || time.Since(n.began) != time.Second {
				n.Errorf("answered with %v and %v", errB, errC)
			}
		}},
		"a held pod is let go when its time is over by kubelet's clock": {
			options: func(o *Options) { o.Wall = time.Now },
			tell: func(n *node) {
				n.Begin(oneStage(60), nil, nil)
				n.list("one/a", "two/b")
				n.do(func(time.Duration) { n.planner.pods[name{"two", "b"}].ends = n.began.Add(20 * time.Second) })
				err := n.asks("two/b")()
				if took := time.Since(n.began); took != 20*time.Second || err == nil {
					n.Errorf("answered after %v with %v", took, err)
				}
			},
		},
		"a held static pod is let go when manifests change": {
			options: func(o *Options) {
				begun := time.Now()
				o.Manifests = func() string { return fmt.Sprint(time.Since(begun) > 10*time.Second) }
			},
			tell: func(n *node) {
				ordering := oneStage(60)
				second := stage("two")
				second.Pods = []v1alpha1.PodSelector{{Source: v1alpha1.PodSourceStatic}}
				ordering.Stages = append(ordering.Stages, second)
				n.Begin(ordering, nil, nil)
				n.list("one/a", "two/b")
				err := n.asks("kube-system/proxy", manifest)()
				if took := time.Since(n.began); took != 10*time.Second+lookTime || err == nil {
					n.Errorf("answered after %v with %v", took, err)
				}
			},
		},
		"a pod waits for the network before it is made, one of the node's network does not": {
			options: func(o *Options) {
				begun := time.Now()
				o.NetworkReady = func(context.Context) (bool, error) { return time.Since(begun) > 10*time.Second, nil }
			},
			tell: func(n *node) {
				n.Begin(v1alpha1.StartupOrdering{}, nil, nil)
				n.list("one/a", "two/b")
				n.want(all(n.asks("one/a"), n.asks("two/b", hostNetwork)), "a 10.2s", "b 0s")
			},
		},
		"a pod whose network cannot be set up is held and tried again": {tell: func(n *node) {
			n.Begin(v1alpha1.StartupOrdering{}, nil, nil)
			n.list("one/a", "two/b")
			n.fails(status.Error(codes.Unknown, noNetwork))
			a := n.asks("one/a")
			b := n.asks("two/b")
			time.Sleep(4500 * time.Millisecond)
			n.fails(nil)
			if err := errors.Join(a(), b()); err != nil {
				n.Errorf("refused: %v", err)
			}
			if took := time.Since(n.began); took > 4500*time.Millisecond+retryEvery {
				n.Errorf("made after %v", took)
			}
			if n.tried > 12 {
				n.Errorf("%d attempts in 5 s", n.tried)
			}
		}},
		"a pod is not held for ever for the network": {tell: func(n *node) {
			n.Begin(v1alpha1.StartupOrdering{}, nil, nil)
			n.list("one/a")
			n.fails(status.Error(codes.Unknown, noNetwork))
			err := n.asks("one/a")()
			if took := time.Since(n.began); took != networkTime || !strings.Contains(fmt.Sprint(err), "network is not ready") || !strings.Contains(fmt.Sprint(err), "subnet.env") {
				n.Errorf("answered after %v with %v", took, err)
			}
		}},
		"another failure of the runtime is passed on": {tell: func(n *node) {
			n.Begin(v1alpha1.StartupOrdering{}, nil, nil)
			n.list("one/a")
			n.fails(status.Error(codes.NotFound, "no such image"))
			if err := n.asks("one/a")(); status.Code(err) != codes.NotFound || strings.Contains(err.Error(), "not ready") {
				n.Errorf("answered with %v", err)
			}
		}},
		"after the recovery a network that fails is the runtime's answer": {tell: func(n *node) {
			n.Begin(v1alpha1.StartupOrdering{}, nil, nil)
			n.Pass()
			n.fails(status.Error(codes.Unknown, noNetwork))
			if err := n.asks("one/a")(); strings.Contains(err.Error(), "not ready") {
				n.Errorf("answered with %v", err)
			}
		}},
	}
	for name, tc := range stories {
		t.Run(name, func(t *testing.T) { story(t, tc.options, tc.tell) })
	}
}

func TestTheRecordHearsOfStages(t *testing.T) {
	heard := make(chan []v1alpha1.StageRecovery, 10)
	story(t, nil, func(n *node) {
		n.Begin(oneStage(10), nil, func(s []v1alpha1.StageRecovery) { heard <- s })
		n.list("one/a", "two/b")
		n.want(all(n.asks("two/b")), "b 10s")
		synctest.Wait()
		close(heard)
	})
	var last []v1alpha1.StageRecovery
	for stages := range heard {
		last = stages
	}
	want := []v1alpha1.StageRecovery{
		opensAt("Critical", 1000, v1alpha1.StageReady), opensAt("one", 1000, v1alpha1.StageTimedOut, "one/a"), opensAt("Rest", 11_000, ""),
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}
