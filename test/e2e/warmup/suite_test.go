// Package warmup shows on a real node that what a restart needs beside the API is kept:
// node files, and images.
package warmup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/cluster"
	"rekindle.edge/test/edgenode"
)

const (
	binary   = "/usr/local/bin/rekindle-agent"
	nodeName = "edge-1"
	poll     = 200 * time.Millisecond
	// soon bounds what takes a healthy node some seconds on an idle machine.
	soon = time.Minute
)

var (
	shared *cluster.Cluster
	admin  client.Client
	node   *edgenode.Node
)

func TestWarmup(t *testing.T) {
	if os.Getenv("REKINDLE_E2E") == "" {
		t.Skip("needs root and minutes; run `make test-e2e`")
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = time.Hour
	RunSpecs(t, "Warm-up", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	shared, err = cluster.Start(ctx, cluster.Options{Nodes: true, Log: say})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(shared.Stop()).To(Succeed()) })
	Expect(v1alpha1.AddToScheme(scheme.Scheme)).To(Succeed())
	admin, err = client.New(shared.Admin(), client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	for _, manifest := range []string{"../../../config/crd/bases", "../../../config/rbac/node.yaml"} {
		apply := exec.CommandContext(ctx, filepath.Join(shared.Tools(), "kubectl"), "apply", "-f", manifest)
		apply.Env = append(os.Environ(), "KUBECONFIG="+shared.AdminKubeconfig())
		said, err := apply.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", said)
	}

	agent := os.Getenv("REKINDLE_AGENT")
	if agent == "" {
		agent = "../../../bin/rekindle-agent"
	}
	node, err = edgenode.New(ctx, shared, edgenode.Options{
		Name: nodeName, Kubelet: edgenode.KubeletVersion(os.Getenv("REKINDLE_KUBELET")),
		Agent: &edgenode.Agent{Binary: agent}, Log: say,
	})
	Expect(err).NotTo(HaveOccurred())
	_, err = node.FirstBoot(ctx)
	Expect(err).NotTo(HaveOccurred())
	output, err := node.Exec(ctx, binary, "install")
	Expect(err).NotTo(HaveOccurred(), "%s", journal())
	say("install: %s", output)
	serveImages(ctx)
})

var _ = JustAfterEach(func() {
	if CurrentSpecReport().Failed() && node != nil {
		say("%s", journal())
	}
})

func say(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }

func journal() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if node.Current() == nil {
		return "the node is off"
	}
	output, err := node.Exec(ctx, "journalctl", "--no-pager", "-n", "200", "-o", "short-precise", "-u", "rekindle-agent")
	return fmt.Sprintf("%s\n%v\n%s", output, err, log("kubelet.log", 20000))
}

// log is the end of one of the witnesses' logs of this boot.
func log(name string, bytes int) string {
	data, err := os.ReadFile(filepath.Join(node.Current().Logs, name))
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-bytes):])
}

// sh runs a script on the node and gives what it prints.
func sh(ctx context.Context, script string, args ...any) string {
	GinkgoHelper()
	output, err := node.Exec(ctx, "sh", "-ec", fmt.Sprintf(script, args...))
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(output)
}

// put writes a file on the node.
func put(ctx context.Context, path, mode, content string) {
	GinkgoHelper()
	_, err := node.ExecInput(ctx, strings.NewReader(content), "sh", "-ec",
		fmt.Sprintf("mkdir -p %s; cat >%s; chmod %s %s", filepath.Dir(path), path, mode, path))
	Expect(err).NotTo(HaveOccurred())
}

// policy gives the node its part of a policy, as the controller would, and waits until the
// agent has taken it over.
func policy(ctx context.Context, spec v1alpha1.NodeRecoverySpec) {
	GinkgoHelper()
	spec.PolicyName, spec.PolicyGeneration = "edge", 1
	recovery := &v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Spec: spec}
	if err := admin.Create(ctx, recovery); err != nil {
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(recovery), recovery)).To(Succeed())
		recovery.Spec = spec
		Expect(admin.Update(ctx, recovery)).To(Succeed())
	}
	Eventually(ctx, func(g Gomega) {
		g.Expect(nodeRecovery(ctx).Status.ObservedGeneration).To(Equal(recovery.Generation))
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
}

func nodeRecovery(ctx context.Context) *v1alpha1.NodeRecovery {
	GinkgoHelper()
	var recovery v1alpha1.NodeRecovery
	Expect(admin.Get(ctx, client.ObjectKey{Name: nodeName}, &recovery)).To(Succeed())
	return &recovery
}

// create makes pods and waits until the API server has them Ready.
func create(ctx context.Context, pods ...*corev1.Pod) {
	GinkgoHelper()
	for _, pod := range pods {
		Expect(admin.Create(ctx, pod)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(node.RestoreWAN(ctx)).To(Succeed())
			Expect(client.IgnoreNotFound(admin.Delete(ctx, pod, client.GracePeriodSeconds(0)))).To(Succeed())
		})
	}
	for _, pod := range pods {
		Eventually(ctx, func(g Gomega) {
			var now corev1.Pod
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(pod), &now)).To(Succeed())
			g.Expect(now.Status.Conditions).To(ContainElement(And(
				HaveField("Type", corev1.PodReady), HaveField("Status", corev1.ConditionTrue))), "%s", pod.Name)
		}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), journal)
	}
}

// powerCut takes the power once all changes are on the disk, and boots cut off.
func powerCut(ctx context.Context) {
	GinkgoHelper()
	time.Sleep(5 * time.Second)
	sh(ctx, "sync")
	Expect(node.PowerCut(ctx)).To(Succeed())
	Expect(node.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
	_, err := node.Boot(ctx)
	Expect(err).NotTo(HaveOccurred())
}

// readyHere says whether kubelet's log has a pod Ready in this boot.
func readyHere(name string) (bool, error) {
	witness, err := node.Current().Witness()
	if err != nil {
		return false, err
	}
	_, ok := witness.FirstReady("default/" + name)
	return ok, nil
}
