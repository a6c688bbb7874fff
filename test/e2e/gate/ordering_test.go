package gate

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

// stage waits until the pods with the label stage are Ready.
func stage(name string, timeoutSeconds int32) v1alpha1.Stage {
	return v1alpha1.Stage{Name: name, WaitFor: v1alpha1.WaitForReady, TimeoutSeconds: timeoutSeconds, Pods: []v1alpha1.PodSelector{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": name}},
	}}}
}

// staged is a web pod of a stage.
func (e *edge) staged(name, stage string, args ...string) *corev1.Pod {
	pod := edgenode.WebPod(name, e.Name, args...)
	pod.Labels["stage"] = stage
	return pod
}

// hostPod is a web pod of a stage on the node's own network.
func (e *edge) hostPod(name, stage string) *corev1.Pod {
	pod := e.staged(name, stage)
	pod.Spec.HostNetwork = true
	pod.Spec.Containers[0].Ports[0].HostPort = edgenode.WebPort
	return pod
}

// lateNetwork has the network plugins fail after a restart until the function that it gives
// is called. The spec's end undoes it.
func (e *edge) lateNetwork(ctx context.Context) (comes func(context.Context)) {
	GinkgoHelper()
	const conf, plugin, up = "/etc/cni/net.d/10-pods.conflist", "/opt/cni/bin/late", "/run/network-up"
	script := `#!/bin/sh
config=$(cat)
if [ "$CNI_COMMAND" = ADD ] && ! [ -e ` + up + ` ]; then
	echo "{\"cniVersion\":\"1.0.0\",\"code\":11,\"msg\":\"the network is late\"}"
	exit 1
fi
echo "$config" | sed "s/\"type\":\"late\"/\"type\":\"bridge\"/" | exec /usr/lib/cni/bridge
`
	_, err := e.Exec(ctx, "sh", "-c", fmt.Sprintf("set -e; mkdir -p /opt/cni/bin; touch %s; echo '%s' > %s; chmod 755 %s; sed -i 's/\"bridge\",$/\"late\",/; s/\"type\": \"bridge\"/\"type\": \"late\"/' %s; sync", up, script, plugin, plugin, conf))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		_, err := e.Exec(ctx, "sed", "-i", `s/"late"/"bridge"/`, conf)
		Expect(err).NotTo(HaveOccurred())
	})
	return func(ctx context.Context) {
		GinkgoHelper()
		_, err := e.Exec(ctx, "touch", up)
		Expect(err).NotTo(HaveOccurred())
	}
}

var recoveries ctrl.Client

// recoveryClient reads and writes NodeRecovery objects, whose definition it applies once.
func recoveryClient(ctx context.Context) ctrl.Client {
	GinkgoHelper()
	if recoveries != nil {
		return recoveries
	}
	apply(ctx, "../../../config/crd/bases/rekindle.edge_noderecoveries.yaml")
	Expect(v1alpha1.AddToScheme(scheme.Scheme)).To(Succeed())
	made, err := ctrl.New(shared.Admin(), ctrl.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	recoveries = made
	return made
}

// order gives the node its stages, as the manager does, and waits until the agent has them.
func (e *edge) order(ctx context.Context, stages ...v1alpha1.Stage) {
	GinkgoHelper()
	e.policy(ctx, v1alpha1.ModeEnforce, stages...)
}

// policy gives the node stages and a mode.
func (e *edge) policy(ctx context.Context, mode v1alpha1.Mode, stages ...v1alpha1.Stage) {
	GinkgoHelper()
	c := recoveryClient(ctx)
	nrec := &v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}
	Eventually(ctx, func() error {
		err := c.Get(ctx, ctrl.ObjectKeyFromObject(nrec), nrec)
		nrec.Spec = v1alpha1.NodeRecoverySpec{
			PolicyName: "order", PolicyGeneration: 1, Mode: mode, StartupOrdering: v1alpha1.StartupOrdering{Stages: stages},
		}
		if apierrors.IsNotFound(err) {
			return c.Create(ctx, nrec)
		}
		if err != nil {
			return err
		}
		return c.Update(ctx, nrec)
	}).WithTimeout(soon).WithPolling(poll).Should(Succeed())
	Eventually(ctx, func() (int64, error) {
		err := c.Get(ctx, ctrl.ObjectKeyFromObject(nrec), nrec)
		return nrec.Status.ObservedGeneration, err
	}).WithTimeout(soon).WithPolling(poll).Should(Equal(nrec.Generation), e.journal)
}

// endOrder takes the node's stages away.
func (e *edge) endOrder(ctx context.Context) {
	GinkgoHelper()
	err := recoveryClient(ctx).Delete(ctx, &v1alpha1.NodeRecovery{ObjectMeta: metav1.ObjectMeta{Name: e.Name}})
	Expect(ctrl.IgnoreNotFound(err)).To(Succeed())
}

// record waits for the record of the boot.
func (e *edge) record(ctx context.Context) v1alpha1.Recovery {
	GinkgoHelper()
	var found v1alpha1.Recovery
	Eventually(ctx, func() (string, error) {
		var nrec v1alpha1.NodeRecovery
		err := recoveryClient(ctx).Get(ctx, ctrl.ObjectKey{Name: e.Name}, &nrec)
		if err != nil || len(nrec.Status.Recoveries) == 0 {
			return "", err
		}
		found = nrec.Status.Recoveries[0]
		return found.BootID, nil
	}).WithTimeout(soon).WithPolling(poll).Should(Equal(e.Current().ID), e.journal)
	return found
}

// asked is containerd's line when kubelet's call for a sandbox has come to it.
var asked = regexp.MustCompile(`(?m)^time="([^"]+)" .*RunPodSandbox for name:\\"([^"\\]*)\\".*$`)

// begun are the times at which sandboxes of this boot were begun, by pod, as containerd's
// log has them.
func (e *edge) begun() map[string][]time.Duration {
	GinkgoHelper()
	times := map[string][]time.Duration{}
	for _, m := range asked.FindAllStringSubmatch(e.log("containerd.log"), -1) {
		if strings.Contains(m[0], "returns sandbox id") || strings.Contains(m[0], "failed, error") {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, m[1])
		Expect(err).NotTo(HaveOccurred())
		times[m[2]] = append(times[m[2]], e.Current().Since(at).Round(time.Millisecond))
	}
	return times
}

// inOrder wants every pod of a stage Ready, by kubelet's log, before the first sandbox of
// the next was begun, by containerd's.
func (e *edge) inOrder(stages ...[]string) {
	GinkgoHelper()
	begun := e.begun()
	witness, err := e.Current().Witness()
	Expect(err).NotTo(HaveOccurred())
	var before time.Duration
	for i, stage := range stages {
		var first, last time.Duration = time.Hour, 0
		for _, name := range stage {
			Expect(begun[name]).NotTo(BeEmpty(), "%s was never begun", name)
			first = min(first, begun[name][0])
			if ready, ok := witness.FirstReady("default/" + name); ok {
				last = max(last, e.Current().Since(ready).Round(time.Millisecond))
			}
		}
		say("stage %d: first sandbox begun %s, last pod Ready %s", i+1, first, last)
		Expect(first).To(BeNumerically(">", before), "stage %d was begun before stage %d was Ready; begun: %v", i+1, i, begun)
		before = last
	}
}

// hold makes a pod that runs, ends, and is run again, so that the first stage waits. The spec's
// end takes it away.
func (e *edge) hold(ctx context.Context) {
	GinkgoHelper()
	_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, e.staged("loop", "first", "-listen=nowhere"), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		err := client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "loop", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
		Expect(ctrl.IgnoreNotFound(err)).To(Succeed())
	})
}
