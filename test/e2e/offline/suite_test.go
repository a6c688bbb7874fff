// Package offline shows on a real node that one which restarts cut off comes back by
// itself, and that what it did meanwhile is handed over when the link is back.
package offline

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/scenario"
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

	// What a node may read beside what every kubelet may, and where it reports to.
	apply(ctx, "-f", "../../../config/rbac/node.yaml")
	apply(ctx, "-k", "../../../config/crd")

	agent, err := scenario.AgentBinary()
	Expect(err).NotTo(HaveOccurred())
	node, err = edgenode.New(ctx, shared, edgenode.Options{
		Name: nodeName, Kubelet: edgenode.KubeletVersion(os.Getenv("REKINDLE_KUBELET")),
		Agent: &edgenode.Agent{Binary: agent}, KubeProxy: true, Logind: true, Log: say,
	})
	Expect(err).NotTo(HaveOccurred())
	_, err = node.FirstBoot(ctx)
	Expect(err).NotTo(HaveOccurred())
	applied := apply(ctx, "-f", recoveryFile())
	say("%s", applied)
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
	waitReady(ctx, allPods()...)
})

// apply runs kubectl apply as the cluster's administrator.
func apply(ctx context.Context, args ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, filepath.Join(shared.Tools(), "kubectl"), append([]string{"apply"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.AdminKubeconfig())
	said, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", said)
	return string(said)
}

// recoveryFile has the node's NodeRecovery, as the controller would render it.
func recoveryFile() string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "recovery.yaml")
	Expect(os.WriteFile(path, []byte(`apiVersion: rekindle.edge/v1alpha1
kind: NodeRecovery
metadata: {name: `+nodeName+`}
spec: {policyName: edge, policyGeneration: 1}
`), 0o600)).To(Succeed())
	return path
}

// Each spec finds the node on, the link up, and all web pods as they were made. What a spec
// that failed has left of them is made anew.
var _ = BeforeEach(OncePerOrdered, func(ctx SpecContext) {
	Expect(node.RestoreWAN(ctx)).To(Succeed())
	if node.Current() == nil {
		_, err := node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
	}
	untainted(ctx)
	all := upstreamPods(ctx)
	for i := range pods {
		pod, ok := all[podName(i)]
		if ok && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			continue
		}
		if ok {
			removePod(ctx, pod.Name)
		}
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, webPod(i), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	inStep(ctx)
}, NodeTimeout(3*time.Minute))

// full skips what is not of the core, unless everything is asked for.
func full() {
	if os.Getenv("REKINDLE_FULL") == "" {
		Skip("not of the core; run `make test-e2e FULL=1`")
	}
}

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
	units, err := node.Exec(ctx, "systemctl", "--no-pager", "--failed")
	return fmt.Sprintf("%s\n%v\n%s\n%s", units, err, tail("agent.log"), tail("kubelet.log"))
}

// tail is the end of a log of this boot.
func tail(name string) string {
	log := wholeLog(name)
	return log[max(0, len(log)-20000):]
}

func wholeLog(name string) string {
	data, err := os.ReadFile(filepath.Join(node.Current().Logs, name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() && node != nil {
		say("%s", journal())
	}
})

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

func allPods() []string {
	var names []string
	for i := range pods {
		names = append(names, podName(i))
	}
	return names
}
