package gather

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/warmup/images"
	"rekindle.edge/api/v1alpha1"
)

func app(spec *corev1.PodSpec) { spec.Containers = []corev1.Container{{Name: "app", Image: "web:1"}} }

func asksConfigMap(spec *corev1.PodSpec) {
	app(spec)
	spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Items: []corev1.KeyToPath{{Key: "k"}},
	}}}}
}

func configMap(keys ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c", UID: "c"}, Data: map[string]string{}}
	for _, key := range keys {
		c.Data[key] = "v"
	}
	return c
}

func image(id string) *runtimeapi.Image { return &runtimeapi.Image{Id: "sha256:" + id, Pinned: true} }

func imageVolume(policy corev1.PullPolicy) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		app(spec)
		spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data:1", PullPolicy: policy}}}}
	}
}

func always(ran string) *corev1.Pod {
	p := pod("web", func(spec *corev1.PodSpec) {
		app(spec)
		spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	})
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ImageID: ran}}
	return p
}

// content has what images lack, by id.
type content map[string]string

func (content) Begin() error                                        { return nil }
func (c content) Look(_ context.Context, asked images.Asked) string { return c[asked.ID] }

// Each case is a node that is well but for one thing.
func TestWhatIsGathered(t *testing.T) {
	web := pod("web", app)
	cases := map[string]struct {
		pods   []*corev1.Pod
		change func(n *node)
		want   []string
	}{
		"a node that is well": {pods: []*corev1.Pod{web}},
		"a configmap that is kept": {
			pods:   []*corev1.Pod{pod("web", asksConfigMap)},
			change: func(n *node) { n.sync(scope("configmaps", "c"), configMap("k")) },
		},
		"a configmap that is not":                {pods: []*corev1.Pod{pod("web", asksConfigMap)}, want: []string{v1alpha1.ReasonObjectMissing}},
		"a configmap that is known not to exist": {pods: []*corev1.Pod{pod("web", asksConfigMap)}, change: func(n *node) { n.sync(scope("configmaps", "c")) }, want: []string{v1alpha1.ReasonObjectMissing}},
		"a configmap without the key":            {pods: []*corev1.Pod{pod("web", asksConfigMap)}, change: func(n *node) { n.sync(scope("configmaps", "c"), configMap("other")) }, want: []string{v1alpha1.ReasonKeyMissing}},
		"a pod that has ended":                   {pods: []*corev1.Pod{func() *corev1.Pod { p := pod("job", asksConfigMap); p.Status.Phase = corev1.PodSucceeded; return p }()}},
		"a pod that is being deleted": {pods: []*corev1.Pod{func() *corev1.Pod {
			p := pod("web", asksConfigMap)
			now := metav1.NewTime(noon)
			p.DeletionTimestamp = &now
			return p
		}()}},
		"a token that is not kept": {
			pods: []*corev1.Pod{pod("web", func(spec *corev1.PodSpec) {
				app(spec)
				spec.ServiceAccountName = "a"
				spec.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}}}}}}
			})},
			want: []string{v1alpha1.ReasonTokenMissing},
		},
		"an image that is not there": {pods: []*corev1.Pod{web}, change: func(n *node) { delete(n.cri.images, "web:1") }, want: []string{v1alpha1.ReasonImageMissing}},
		"an image whose content is empty": {
			pods: []*corev1.Pod{web}, change: func(n *node) { n.write("/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/web", "") },
			want: []string{v1alpha1.ReasonImageDamaged},
		},
		"an image whose content is gone": {
			pods: []*corev1.Pod{web}, change: func(n *node) { n.write("/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/other", "x") },
			want: []string{v1alpha1.ReasonImageDamaged},
		},
		"an image that says what it lacks": {pods: []*corev1.Pod{web}, change: func(n *node) {
			n.write("/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/web", "x")
			n.Content = content{"sha256:web": "it is empty"}
		}, want: []string{v1alpha1.ReasonImageDamaged}},
		"an image volume that is on the node": {
			pods: []*corev1.Pod{pod("web", imageVolume(corev1.PullIfNotPresent))}, change: func(n *node) { n.cri.images["data:1"] = image("data") },
		},
		"an image volume that is not": {pods: []*corev1.Pod{pod("web", imageVolume(corev1.PullIfNotPresent))}, want: []string{v1alpha1.ReasonImageMissing}},
		"an image volume that is pulled each time": {
			pods: []*corev1.Pod{pod("web", imageVolume(corev1.PullAlways))}, change: func(n *node) { n.cri.images["data:1"] = image("data") },
			want: []string{v1alpha1.ReasonImagePullNeeded},
		},
		"Always, and the container has run":     {pods: []*corev1.Pod{always("sha256:web")}},
		"Always, and the container has not run": {pods: []*corev1.Pod{always("")}, want: []string{v1alpha1.ReasonImagePullNeeded}},
		"an init container without its image": {pods: []*corev1.Pod{pod("web", func(spec *corev1.PodSpec) {
			app(spec)
			spec.InitContainers = []corev1.Container{{Name: "first", Image: "first:1"}}
		})}, want: []string{v1alpha1.ReasonImageMissing}},
		"an image whose content is there": {
			pods: []*corev1.Pod{web}, change: func(n *node) { n.write("/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/web", "x") },
		},
		"a name that leads to another image": {
			pods: []*corev1.Pod{func() *corev1.Pod {
				p := pod("web", app)
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ImageID: "registry/web@sha256:old"}}
				return p
			}()},
			want: []string{v1alpha1.ReasonImageChanged},
		},
		"a name that leads to the same image, by its manifest": {
			pods: []*corev1.Pod{func() *corev1.Pod {
				p := pod("web", app)
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ImageID: "registry/web@sha256:manifest"}}
				return p
			}()},
			change: func(n *node) { n.cri.images["web:1"].RepoDigests = []string{"registry/web@sha256:manifest"} },
		},
		"no network for pods":    {change: func(n *node) { n.cri.network = "no configuration" }, want: []string{v1alpha1.ReasonRuntimeNotReady}},
		"a unit that is masked":  {change: func(n *node) { n.systemd.file.State = "masked" }, want: []string{v1alpha1.ReasonUnitDisabled, v1alpha1.ReasonUnitDisabled}},
		"a wait for the network": {change: func(n *node) { n.systemd.file.After = []string{networkOnline} }, want: []string{v1alpha1.ReasonNetworkWait}},
		"a wait that is cut short": {change: func(n *node) {
			n.systemd.file.After = []string{networkOnline}
			n.write("/etc/systemd/system/rekindle-early.service", "x")
			n.write("/etc/resolv.conf", "")
		}},
		"a kubelet that logs in with a token": {change: func(n *node) { n.Identity = identity{err: errors.New("no client certificate")} }, want: []string{v1alpha1.ReasonIdentityUnusable}},
		"a certificate in its last minutes":   {change: func(n *node) { n.Identity = identity{ends: noon.Add(time.Minute)} }, want: []string{v1alpha1.ReasonCertificateEnding}},
		"no clock":                            {change: func(n *node) { _ = os.Remove(filepath.Join(n.Root, "/dev/rtc0")) }, want: []string{v1alpha1.ReasonNoClock}},
		"a file of the installation":          {change: func(n *node) { n.Files = func() ([]string, error) { return []string{"/gone"}, nil } }, want: []string{v1alpha1.ReasonInstallIncomplete}},
		"graceful shutdown":                   {change: func(n *node) { n.write(defaultConfig, "shutdownGracePeriod: 30s") }, want: []string{v1alpha1.ReasonGracefulShutdown}},
		"a configuration that is no YAML":     {change: func(n *node) { n.write(defaultConfig, "a: [") }, want: []string{v1alpha1.ReasonKubeletConfig}},
		"a checkpoint of another policy":      {change: func(n *node) { n.write("/var/lib/kubelet/cpu_manager_state", `{"policyName":"static"}`) }, want: []string{v1alpha1.ReasonKubeletCheckpoint}},
		"a checkpoint of this policy": {change: func(n *node) {
			n.write("/var/lib/kubelet/cpu_manager_state", `{"policyName":"none","defaultCpuSet":""}`)
		}},
		"a memory checkpoint with entries": {change: func(n *node) {
			n.write("/var/lib/kubelet/memory_manager_state", `{"policyName":"None","entries":{"u":{"c":[{"numaAffinity":[0]}]}}}`)
		}},
		"an empty checkpoint": {change: func(n *node) { n.write("/var/lib/kubelet/allocated_pods_state", "") }, want: []string{v1alpha1.ReasonKubeletCheckpoint}},
		"processors that are gone": {change: func(n *node) {
			n.write(defaultConfig, "cpuManagerPolicy: static")
			n.write("/sys/devices/system/cpu/online", "0-1\n")
			n.write("/var/lib/kubelet/cpu_manager_state", `{"policyName":"static","defaultCpuSet":"0,2-3","entries":{"u":{"c":"1"}}}`)
		}, want: []string{v1alpha1.ReasonKubeletCheckpoint}},
		"processors as they were": {change: func(n *node) {
			n.write(defaultConfig, "cpuManagerPolicy: static")
			n.write("/sys/devices/system/cpu/online", "0-3\n")
			n.write("/var/lib/kubelet/cpu_manager_state", `{"policyName":"static","defaultCpuSet":"0,2-3","entries":{"u":{"c":"1"}}}`)
		}},
		"an empty serving certificate": {change: func(n *node) {
			n.write("/var/lib/kubelet/pki/kubelet.crt", "")
			n.write("/var/lib/kubelet/pki/kubelet.key", "")
		}, want: []string{v1alpha1.ReasonKubeletFileEmpty}},
		"a serving certificate that is not used": {change: func(n *node) {
			n.write(defaultConfig, "tlsCertFile: /etc/kubelet.crt")
			n.write("/var/lib/kubelet/pki/kubelet.crt", "")
			n.write("/var/lib/kubelet/pki/kubelet.key", "")
		}},
		"a serving certificate without its key, which kubelet makes anew": {change: func(n *node) { n.write("/var/lib/kubelet/pki/kubelet.crt", "") }},
		"a device plugin": {
			pods: []*corev1.Pod{pod("web", func(spec *corev1.PodSpec) {
				app(spec)
				spec.Containers[0].Resources.Limits = corev1.ResourceList{"vendor.example/card": one}
			})},
			change: func(n *node) {
				n.write("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", `{"Data":{"RegisteredDevices":{"vendor.example/card":["0"]}},"Checksum":1}`)
			},
			want: []string{v1alpha1.ReasonDevicePlugin},
		},
		"a DRA checkpoint that is empty": {change: func(n *node) { n.write("/var/lib/kubelet/dra_manager_state", "") }, want: []string{v1alpha1.ReasonKubeletCheckpoint}},
		"a DRA checkpoint":               {change: func(n *node) { n.write("/var/lib/kubelet/dra_manager_state", `{"Data":"{}","Checksum":1}`) }},
		"a CPU policy by flag, and a checkpoint of the file's": {change: func(n *node) {
			n.kubeletArgs = []string{"kubelet", "--cpu-manager-policy=static"}
			n.write("/var/lib/kubelet/cpu_manager_state", `{"policyName":"none","defaultCpuSet":""}`)
		}, want: []string{v1alpha1.ReasonKubeletCheckpoint}},
		"a CPU policy by flag, over the file's": {change: func(n *node) {
			n.kubeletArgs = []string{"kubelet", "--cpu-manager-policy", "none"}
			n.write(defaultConfig, "cpuManagerPolicy: static")
			n.write("/var/lib/kubelet/cpu_manager_state", `{"policyName":"none","defaultCpuSet":""}`)
		}},
		"graceful shutdown in a drop-in that a flag names": {change: func(n *node) {
			n.kubeletArgs = []string{"kubelet", "--config-dir=/etc/kubelet.d"}
			n.write("/etc/kubelet.d/10.conf", "shutdownGracePeriod: 30s")
		}, want: []string{v1alpha1.ReasonGracefulShutdown}},
		"graceful shutdown in a file that no flag names": {change: func(n *node) {
			n.kubeletArgs = []string{"kubelet", "--config=/etc/kubelet.yaml"}
			n.write("/etc/kubelet.yaml", "{}")
			n.write(defaultConfig, "shutdownGracePeriod: 30s")
		}},
		"a configuration that a flag names and that is gone": {change: func(n *node) {
			n.kubeletArgs = []string{"kubelet", "--config=/etc/kubelet.yaml"}
		}, want: []string{v1alpha1.ReasonKubeletConfig}},
		"an empty certificate elsewhere, by flag": {change: func(n *node) {
			n.kubeletArgs = []string{"kubelet", "--cert-dir=/etc/pki"}
			n.write("/etc/pki/kubelet.crt", "")
			n.write("/etc/pki/kubelet.key", "")
		}, want: []string{v1alpha1.ReasonKubeletFileEmpty}},
		"a checkpoint in another root of kubelet's": {change: func(n *node) {
			n.kubeletArgs = []string{"kubelet", "--root-dir=/data/kubelet"}
			n.write("/data/kubelet/allocated_pods_state", "")
		}, want: []string{v1alpha1.ReasonKubeletCheckpoint}},
		"an eviction threshold by flag": {change: func(n *node) {
			n.kubeletArgs = []string{"kubelet", "--eviction-hard=memory.available<1Mi,nodefs.available<100%"}
			n.write("/var/lib/kubelet/x", "")
		}, want: []string{v1alpha1.ReasonDiskFull}},
		"a CNI directory of its own": {change: func(n *node) {
			n.cri.info = map[string]string{"config": `{"cni":{"confDir":"/etc/mynet"}}`}
			n.write("/etc/cni/net.d/10.conflist", `{"plugins":[{"type":"bridge"}]}`)
			n.write("/etc/mynet/README", "")
		}, want: []string{v1alpha1.ReasonCNINotConfigured}},
		"a plugin's kubeconfig that a restart loses": {change: func(n *node) {
			n.write("/proc/self/mountinfo", "1 1 0:1 / /run rw - tmpfs tmpfs rw\n")
			n.write("/run/kc", kubeconfig("https://127.0.0.1:7443"))
			n.write("/etc/cni/net.d/10.conflist", `{"plugins":[{"type":"calico","kubernetes":{"kubeconfig":"/run/kc"}}]}`)
		}, want: []string{v1alpha1.ReasonCNIFileVolatile}},
		"a plugin that trusts the local API by the agent's own file": {change: func(n *node) {
			n.write("/proc/self/mountinfo", "1 1 0:1 / /run rw - tmpfs tmpfs rw\n")
			n.write("/etc/kc", strings.Replace(kubeconfig("https://127.0.0.1:7443"), `{"server"`, `{"certificate-authority":"/run/rekindle/pki/ca.crt","server"`, 1))
			n.write("/etc/cni/net.d/10.conflist", `{"plugins":[{"type":"calico","kubernetes":{"kubeconfig":"/etc/kc"}}]}`)
		}},
		"a plugin's kubeconfig that the policy keeps": {change: func(n *node) {
			n.spec = &snapshot.Spec{Spec: v1alpha1.NodeRecoverySpec{Snapshot: v1alpha1.Snapshot{NodeFiles: []string{"/run/kc"}}}}
			n.write("/proc/self/mountinfo", "1 1 0:1 / /run rw - tmpfs tmpfs rw\n")
			n.write("/run/kc", kubeconfig("https://127.0.0.1:7443"))
			n.write("/etc/cni/net.d/10.conflist", `{"plugins":[{"type":"calico","kubernetes":{"kubeconfig":"/run/kc"}}]}`)
		}},
		"no CNI configuration": {change: func(n *node) { n.write("/etc/cni/net.d/README", "") }, want: []string{v1alpha1.ReasonCNINotConfigured}},
		"a CNI configuration":  {change: func(n *node) { n.write("/etc/cni/net.d/10.conflist", `{"plugins":[{"type":"bridge"}]}`) }},
		"a CNI configuration that a restart loses": {change: func(n *node) {
			n.write("/proc/self/mountinfo", "1 1 0:1 / /etc/cni/net.d rw - tmpfs tmpfs rw\n")
			n.write("/etc/cni/net.d/10.conflist", `{"plugins":[{"type":"bridge"}]}`)
		}, want: []string{v1alpha1.ReasonCNINotConfigured}},
		"flannel's file": {change: func(n *node) {
			n.write("/proc/self/mountinfo", "1 1 0:1 / /run rw - tmpfs tmpfs rw\n")
			n.write("/etc/cni/net.d/10.conflist", `{"plugins":[{"type":"flannel"}]}`)
		}, want: []string{v1alpha1.ReasonCNIFileVolatile}},
		"flannel's file that the policy keeps": {change: func(n *node) {
			n.spec = &snapshot.Spec{Spec: v1alpha1.NodeRecoverySpec{Snapshot: v1alpha1.Snapshot{NodeFiles: []string{"/run/flannel/subnet.env"}}}}
			n.write("/proc/self/mountinfo", "1 1 0:1 / /run rw - tmpfs tmpfs rw\n")
			n.write("/etc/cni/net.d/10.conflist", `{"plugins":[{"type":"flannel"}]}`)
		}},
		"a plugin that asks the API server": {change: func(n *node) {
			n.write("/etc/cni/net.d/kc", kubeconfig("https://api.example:6443"))
			n.write("/etc/cni/net.d/10.conflist", `{"plugins":[{"type":"calico","kubernetes":{"kubeconfig":"/etc/cni/net.d/kc"}}]}`)
		}, want: []string{v1alpha1.ReasonCNINeedsAPIServer}},
		"a plugin that asks the local API": {change: func(n *node) {
			n.write("/etc/cni/net.d/kc", kubeconfig("https://169.254.77.43:7443"))
			n.write("/etc/cni/net.d/10.conflist", `{"plugins":[{"type":"calico","kubernetes":{"kubeconfig":"/etc/cni/net.d/kc"}}]}`)
		}},
		"a read-only disk": {change: func(n *node) {
			n.write("/var/lib/kubelet/x", "")
			n.write("/proc/self/mountinfo", "1 1 8:1 / / rw - ext4 /dev/sda ro,errors=remount-ro\n")
		}, want: []string{v1alpha1.ReasonDiskReadOnly}},
		"a mount that is read-only for the agent alone": {change: func(n *node) {
			n.write("/var/lib/kubelet/x", "")
			n.write("/proc/self/mountinfo", "1 1 8:1 / / ro - ext4 /dev/sda rw\n")
		}},
		"a disk that kubelet calls full": {change: func(n *node) {
			n.write("/var/lib/kubelet/x", "")
			n.write(defaultConfig, "evictionHard: {nodefs.available: 100%}")
		}, want: []string{v1alpha1.ReasonDiskFull}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, tc.pods...)
			n.cri.images["web:1"] = image("web")
			// The machine's own disks are none of the test's.
			n.write(defaultConfig, "evictionHard: {nodefs.available: 0%}")
			if tc.change != nil {
				tc.change(n)
			}
			n.addEviction()
			if diff := cmp.Diff(tc.want, n.reasons()); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARuntimeThatDoesNotAnswerIsNoMissingImage(t *testing.T) {
	n := newNode(t, pod("web", app))
	n.cri.down = true
	facts := n.Facts(t.Context())
	if len(facts.Invisible) != 1 || !strings.Contains(facts.Invisible[0], "container runtime") || len(facts.Pods[0].Images) != 0 {
		t.Errorf("invisible %q, images %v", facts.Invisible, facts.Pods[0].Images)
	}
	if c := readiness.Conclude(nil, facts.Invisible); c.Status != metav1.ConditionUnknown {
		t.Errorf("verdict %+v", c)
	}
}

func TestAServiceThatAPodNamesInALaterStage(t *testing.T) {
	labelled := func(name string, args ...string) *corev1.Pod {
		p := pod(name, func(spec *corev1.PodSpec) {
			app(spec)
			spec.Containers[0].Args = args
		})
		p.Labels = map[string]string{"app": name}
		return p
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "s"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "db"}}}
	stage := func(app string) v1alpha1.Stage {
		return v1alpha1.Stage{Name: app, Pods: []v1alpha1.PodSelector{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}
	}
	for name, tc := range map[string]struct {
		arg    string
		stages []v1alpha1.Stage
		want   []string
	}{
		"after the pod":                  {"--db=http://db:80", []v1alpha1.Stage{stage("web"), stage("db")}, []string{v1alpha1.ReasonStageOrder}},
		"before it":                      {"--db=http://db:80", []v1alpha1.Stage{stage("db"), stage("web")}, nil},
		"another one":                    {"--db=http://other-db:80", []v1alpha1.Stage{stage("web"), stage("db")}, nil},
		"without stages":                 {"--db=http://db:80", nil, nil},
		"a stage that nothing is in yet": {"", []v1alpha1.Stage{stage("web"), stage("till"), stage("db")}, []string{v1alpha1.ReasonStageEmpty}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, labelled("web", tc.arg), labelled("db"))
			n.write(defaultConfig, "evictionHard: {nodefs.available: 0%}")
			n.cri.images["web:1"] = image("web")
			n.sync(snapshot.Scope{Resource: services}, service)
			n.spec = &snapshot.Spec{Spec: v1alpha1.NodeRecoverySpec{StartupOrdering: v1alpha1.StartupOrdering{Stages: tc.stages}}}
			for range 2 {
				if diff := cmp.Diff(tc.want, n.reasons()); diff != "" {
					t.Errorf("reasons (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestStagesThatChangeMovePods(t *testing.T) {
	n := newNode(t, pod("web", app))
	n.cri.images["web:1"] = image("web")
	stage := func(names ...string) {
		n.spec = &snapshot.Spec{}
		for _, name := range names {
			n.spec.Spec.StartupOrdering.Stages = append(n.spec.Spec.StartupOrdering.Stages, v1alpha1.Stage{Name: name, Pods: []v1alpha1.PodSelector{{Namespaces: []string{name}}}})
		}
	}
	for _, tc := range []struct {
		stages []string
		want   string
	}{{nil, ""}, {[]string{"db", "shop"}, "shop"}, {[]string{"shop", "db"}, "shop"}, {[]string{"db"}, "Rest"}, {nil, ""}} {
		stage(tc.stages...)
		for range 2 {
			if got := n.Facts(t.Context()).Pods[0].StageName; got != tc.want {
				t.Errorf("stages %v: the pod is in %q, want %q", tc.stages, got, tc.want)
			}
		}
	}
}

func TestWhatDoesNotChangeIsAskedOnce(t *testing.T) {
	n := newNode(t, pod("a", app), pod("b", app))
	n.cri.images["web:1"] = image("web")
	n.Facts(t.Context())
	n.Facts(t.Context())
	if n.cri.asks != 1 || n.systemd.asks != 2 {
		t.Errorf("%d questions for images, want 1; %d for units, want 2", n.cri.asks, n.systemd.asks)
	}
	delete(n.cri.images, "web:1")
	if got := n.reasons(); len(got) == 0 || got[0] != v1alpha1.ReasonImageMissing {
		t.Errorf("reasons %v after the image went", got)
	}
}
