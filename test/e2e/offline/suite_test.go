// Package offline shows on a real node that one which restarts cut off comes back by
// itself, and that what it did meanwhile is handed over when the link is back.
package offline

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
)

const (
	binary   = "/usr/local/bin/rekindle-agent"
	nodeName = "edge-1"
	pods     = 10
	poll     = 200 * time.Millisecond
	// soon bounds what takes a healthy node some seconds on an idle machine.
	soon = time.Minute
	// batch is more than the agent takes to write changes to the disk.
	batch = 5 * time.Second
)

var (
	shared *cluster.Cluster
	client kubernetes.Interface
	node   *edgenode.Node
)

func TestOffline(t *testing.T) {
	if os.Getenv("REKINDLE_E2E") == "" {
		t.Skip("needs root and minutes; run `make test-e2e`")
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = time.Hour
	RunSpecs(t, "Offline", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	shared, err = cluster.Start(ctx, cluster.Options{Nodes: true, Log: say})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(shared.Stop()).To(Succeed()) })
	client, err = kubernetes.NewForConfig(shared.Admin())
	Expect(err).NotTo(HaveOccurred())

	// What a node may read beside what every kubelet may.
	rights := exec.CommandContext(ctx, filepath.Join(shared.Tools(), "kubectl"), "apply", "-f", "../../../config/rbac/node.yaml")
	rights.Env = append(os.Environ(), "KUBECONFIG="+shared.AdminKubeconfig())
	said, err := rights.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", said)

	agent := os.Getenv("REKINDLE_AGENT")
	if agent == "" {
		agent = "../../../bin/rekindle-agent"
	}
	node, err = edgenode.New(ctx, shared, edgenode.Options{
		Name: nodeName, Kubelet: edgenode.KubeletVersion(os.Getenv("REKINDLE_KUBELET")),
		Agent: &edgenode.Agent{Binary: agent}, KubeProxy: true, Log: say,
	})
	Expect(err).NotTo(HaveOccurred())
	_, err = node.FirstBoot(ctx)
	Expect(err).NotTo(HaveOccurred())
	output, err := node.Exec(ctx, binary, "install")
	Expect(err).NotTo(HaveOccurred(), "%s", journal())
	say("install: %s", output)

	_, err = client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"colour": "blue"},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().Secrets(metav1.NamespaceDefault).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"key": "secret"},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for i := range pods {
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, webPod(i), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	waitReadyUpstream(ctx, pods)
})

// webPod uses what a pod may want of the API: a token, a configmap in a volume and in its
// environment, a secret, its own labels, and a configmap that need not be there.
func webPod(i int) *corev1.Pod {
	pod := edgenode.WebPod(podName(i), nodeName)
	optional := true
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("settings")}}},
		corev1.Volume{Name: "key", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}}},
		corev1.Volume{Name: "none", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("none"), Optional: &optional}}},
		corev1.Volume{Name: "labels", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
			Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"},
		}}}}},
	)
	container := &pod.Spec.Containers[0]
	for _, volume := range pod.Spec.Volumes[len(pod.Spec.Volumes)-4:] {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: "/" + volume.Name})
	}
	container.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("settings")}}}
	return pod
}

func podName(i int) string { return fmt.Sprintf("web-%d", i) }

func say(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

func journal() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if node.Current() == nil {
		return "the node is off"
	}
	output, err := node.Exec(ctx, "journalctl", "--no-pager", "-n", "200", "-o", "short-precise", "-u", "rekindle-agent")
	return fmt.Sprintf("%s\n%v\n%s", output, err, tail("kubelet.log"))
}

func tail(name string) string {
	data, err := os.ReadFile(filepath.Join(node.Current().Logs, name))
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-20000):])
}

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() && node != nil {
		say("%s", journal())
	}
})

// readyUpstream counts the pods that the API server holds Ready.
func readyUpstream(ctx context.Context) (int, error) {
	list, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	count := 0
	for _, pod := range list.Items {
		if ready(pod) {
			count++
		}
	}
	return count, nil
}

func ready(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func waitReadyUpstream(ctx context.Context, count int) {
	GinkgoHelper()
	Eventually(ctx, readyUpstream).WithArguments(ctx).WithTimeout(soon).WithPolling(poll).Should(Equal(count), journal)
}

// inStep waits until the API server has the pods as they run on the node, all Ready.
func inStep(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		running, err := node.Exec(ctx, "ctr", "-n", "k8s.io", "tasks", "list", "-q")
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range allPods() {
			pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ready(*pod)).To(BeTrue(), "%s", name)
			id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
			g.Expect(running).To(ContainSubstring(id), "%s", name)
		}
	}).WithTimeout(soon).WithPolling(time.Second).Should(Succeed(), journal)
}

// powerCut takes the power once all changes are on the disk, and boots with the WAN as it
// is said to be.
func powerCut(ctx context.Context, wan edgenode.WANMode) *edgenode.Boot {
	GinkgoHelper()
	time.Sleep(batch)
	_, err := node.Exec(ctx, "sync")
	Expect(err).NotTo(HaveOccurred())
	Expect(node.PowerCut(ctx)).To(Succeed())
	Expect(node.CutWAN(ctx, wan)).To(Succeed())
	boot, err := node.Boot(ctx)
	Expect(err).NotTo(HaveOccurred())
	return boot
}

// waitReadyHere waits until kubelet's log has the pods Ready in this boot, and gives when
// the last was, since kernel start.
func waitReadyHere(ctx context.Context, names ...string) time.Duration {
	GinkgoHelper()
	boot := node.Current()
	var last time.Duration
	Eventually(ctx, func(g Gomega) {
		witness, err := boot.Witness()
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range names {
			first, ok := witness.FirstReady("default/" + name)
			g.Expect(ok).To(BeTrue(), "%s is not Ready", name)
			last = max(last, boot.Since(first).Round(time.Millisecond))
		}
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
	return last
}

func allPods() []string {
	var names []string
	for i := range pods {
		names = append(names, podName(i))
	}
	return names
}
