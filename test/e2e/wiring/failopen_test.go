package wiring

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/test/edgenode"
)

// How the program of the agent is broken. The real one lies beside it.
const (
	exitsOne    = "#!/bin/sh\nexit 1\n"
	hangsAtOnce = "#!/bin/sh\nkill -STOP $$\n"
	// The subshell outlives the exec, and its parent is the agent then.
	hangsLater = "#!/bin/sh\n[ \"$1\" = run ] && ( sleep 3; kill -STOP $$ ) &\nexec " + binary + ".real \"$@\"\n"
)

// lateMount makes the state directory a file system that comes after some seconds.
func lateMount(seconds int) func(root string) error {
	return func(root string) error {
		units := filepath.Join(root, "etc/systemd/system")
		late := fmt.Sprintf("[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=sleep %d\n", seconds)
		mount := "[Unit]\nDefaultDependencies=no\nRequires=late.service\nAfter=late.service\n" +
			"[Mount]\nWhat=tmpfs\nWhere=/var/lib/rekindle\nType=tmpfs\n"
		if err := os.WriteFile(filepath.Join(units, "late.service"), []byte(late), 0o644); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(units, "var-lib-rekindle.mount"), []byte(mount), 0o644)
	}
}

// program replaces the agent's program by a script.
func program(script string) func(root string) error {
	return func(root string) error {
		path := filepath.Join(root, "local-bin/rekindle-agent")
		if err := os.Rename(path, path+".real"); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(script), 0o755)
	}
}

func remove(paths ...string) func(root string) error {
	return func(root string) error {
		for _, path := range paths {
			if err := os.RemoveAll(filepath.Join(root, path)); err != nil {
				return err
			}
		}
		return nil
	}
}

func garbage(paths ...string) func(root string) error {
	return func(root string) error {
		for _, path := range paths {
			if err := os.WriteFile(filepath.Join(root, path), []byte("garbage"), 0o600); err != nil {
				return err
			}
		}
		return nil
	}
}

// withKubelet runs a command each time before kubelet's process starts.
func withKubelet(command string) func(root string) error {
	return func(root string) error {
		dir := filepath.Join(root, "etc/systemd/system/kubelet.service.d")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "10-broken.conf"), []byte("[Service]\nExecStartPre=-"+command+"\n"), 0o644)
	}
}

// unreadablePlan is what the gate keeps of this boot in /run, damaged before the agent first reads it.
func unreadablePlan(root string) error {
	dir := filepath.Join(root, "etc/systemd/system/rekindle-agent.service.d")
	const damage = "mkdir -p /run/rekindle; for f in order stale-sandboxes.$$(cat /proc/sys/kernel/random/boot_id); do echo '{damaged' >/run/rekindle/$$f.json; done"
	return os.WriteFile(filepath.Join(dir, "zz-damage.conf"), []byte("[Service]\nExecStartPre=/bin/sh -c \""+damage+"\"\n"), 0o644)
}

// hangsInMidRecovery is when kubelet has asked for sandboxes and waits for them.
const hangsInMidRecovery = "systemd-run --no-block --collect --timer-property=AccuracySec=10ms --on-active=2s systemctl kill --signal=STOP rekindle-agent.service"

func stateIsAFile(root string) error {
	path := filepath.Join(root, "var/lib/rekindle")
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

var _ = Describe("a node whose agent is broken", Ordered, func() {
	const name = "edge-open"
	var node *edgenode.Node
	// plain is how long the node takes without the agent, from kernel start.
	var plain struct{ static, api time.Duration }

	BeforeAll(func(ctx SpecContext) {
		node = newNode(ctx, name)
		_, err := node.FirstBoot(ctx)
		Expect(err).NotTo(HaveOccurred())
		createPods(ctx, node)
		powerOff(ctx, node)
		Expect(node.EditDisk(ctx, writeStaticPod)).To(Succeed())
		_, err = node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		waitReady(ctx, node, staticPod(node), soon)
		powerOff(ctx, node)

		boot, err := node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		plain.static = waitReady(ctx, node, staticPod(node), soon)
		plain.api = waitAllReady(ctx, node, soon)
		AddReportEntry("plain", fmt.Sprintf("static pod %s, all pods %s (boot %s)", plain.static, plain.api, boot.ID))

		install(ctx, node)
		powerOff(ctx, node)
		Expect(node.SaveDisk(ctx, "installed")).To(Succeed())
	}, NodeTimeout(5*time.Minute))

	It("does not wait for the network when the agent is well", func(ctx SpecContext) {
		Expect(node.EditDisk(ctx, networkIsLate)).To(Succeed())
		_, err := node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("static pod", waitReady(ctx, node, staticPod(node), plain.static+20*time.Second).String())
		AddReportEntry("all pods", waitAllReady(ctx, node, plain.api+20*time.Second).String())
		Expect(isWired(ctx, node)).To(BeTrue())
		state, _ := node.Exec(ctx, "systemctl", "is-active", "network-online.target")
		Expect(state).To(Equal("inactive\n"), "the network was there before kubelet, nothing is shown")
		powerOff(ctx, node)
	}, SpecTimeout(2*time.Minute))

	It("comes back when the container runtime is away for 20 s in mid-recovery", func(ctx SpecContext) {
		Expect(node.RestoreDisk(ctx, "installed")).To(Succeed())
		boot, err := node.Boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		sandboxes := func() (int, error) {
			witness, err := boot.Witness()
			return len(witness.Sandboxes), err
		}
		Eventually(ctx, sandboxes).WithTimeout(soon).WithPolling(20 * time.Millisecond).Should(BeNumerically(">", 0))
		Expect(node.Systemctl(ctx, "stop", "containerd.service")).To(Succeed())
		away := boot.Uptime()
		time.Sleep(20 * time.Second)
		Expect(node.Systemctl(ctx, "start", "containerd.service")).To(Succeed())
		entry := fmt.Sprintf("away from %s to %s", away, boot.Uptime())
		// Kubelet waits 10 to 15 s before it tries a pod again whose sandbox failed.
		static := waitReady(ctx, node, staticPod(node), boot.Uptime()+worse)
		AddReportEntry(entry, fmt.Sprintf("static pod %s, all pods %s", static, waitAllReady(ctx, node, boot.Uptime()+worse)))
		waitPodsReady(ctx, node)
		// It was not the agent's fault.
		Expect(isWired(ctx, node)).To(BeTrue())
		Expect(node.Exec(ctx, "systemctl", "show", "-p", "NRestarts", "--value", "rekindle-agent.service")).To(Equal("0\n"))
		_, err = node.Exec(ctx, "test", "-e", "/run/rekindle/unhooked")
		Expect(err).To(HaveOccurred(), "kubelet was taken away from the agent")
		powerOff(ctx, node)
	}, SpecTimeout(3*time.Minute))

	DescribeTable("is never worse than a plain one",
		func(ctx SpecContext, broken func(root string) error, wired bool) {
			for _, linkUp := range []bool{true, false} {
				link := map[bool]string{true: "link up", false: "link down"}[linkUp]
				Expect(node.RestoreDisk(ctx, "installed")).To(Succeed())
				Expect(node.EditDisk(ctx, broken)).To(Succeed())
				if linkUp {
					Expect(node.RestoreWAN(ctx)).To(Succeed())
				} else {
					Expect(node.CutWAN(ctx, edgenode.WANLinkDown)).To(Succeed())
				}
				_, err := node.Boot(ctx)
				Expect(err).NotTo(HaveOccurred())

				static := waitReady(ctx, node, staticPod(node), plain.static+worse)
				entry := fmt.Sprintf("static pod %s (plain %s)", static, plain.static)
				if linkUp {
					all := waitAllReady(ctx, node, plain.api+worse)
					entry += fmt.Sprintf(", all pods %s (plain %s)", all, plain.api)
				}
				AddReportEntry(link, entry)
				Eventually(ctx, isWired).WithArguments(node).WithTimeout(soon).WithPolling(poll).Should(Equal(wired), link)
				powerOff(ctx, node)
			}
		},
		Entry("the agent is well", func(string) error { return nil }, true, SpecTimeout(4*time.Minute)),
		Entry("its program is deleted", remove("local-bin/rekindle-agent"), false, SpecTimeout(4*time.Minute)),
		Entry("its program exits with 1", program(exitsOne), false, SpecTimeout(4*time.Minute)),
		Entry("its socket unit is deleted", remove("etc/systemd/system/rekindle-agent.socket", "etc/systemd/system/sockets.target.wants"), true, SpecTimeout(4*time.Minute)),
		Entry("it hangs at its start", program(hangsAtOnce), false, SpecTimeout(4*time.Minute)),
		Entry("it hangs later, each time", program(hangsLater), false, SpecTimeout(4*time.Minute)),
		Entry("it hangs while it holds kubelet's calls to the container runtime, each time", withKubelet(hangsInMidRecovery), false, SpecTimeout(4*time.Minute)),
		Entry("the gate's socket is deleted, each time", withKubelet("rm -f /run/rekindle/cri.sock"), false, SpecTimeout(4*time.Minute)),
		Entry("its configuration cannot be read", garbage("etc/rekindle/agent.yaml"), false, SpecTimeout(4*time.Minute)),
		Entry("the gate's plan of this boot cannot be read", unreadablePlan, true, SpecTimeout(4*time.Minute)),
		Entry("its store and its keys are damaged", garbage("var/lib/rekindle/rekindle.db", "var/lib/rekindle/pki/ca.crt"), true, SpecTimeout(4*time.Minute)),
		Entry("its state directory is a file", stateIsAFile, false, SpecTimeout(4*time.Minute)),
		Entry("its file system comes 20 s late", lateMount(20), true, SpecTimeout(4*time.Minute)),
		Entry("its file system comes 40 s late", lateMount(40), true, SpecTimeout(4*time.Minute)),
	)
})

// networkIsLate gives kubelet's unit the usual order after network-online.target, which
// takes as long as it does on a node whose link has no carrier.
func networkIsLate(root string) error {
	units := filepath.Join(root, "etc/systemd/system")
	for path, content := range map[string]string{
		"kubelet.service.d/10-online.conf":  "[Unit]\nWants=network-online.target\nAfter=network-online.target\n",
		"wait-online.service":               "[Unit]\nBefore=network-online.target\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=sleep 120\n",
		"network-online.target.d/wait.conf": "[Unit]\nWants=wait-online.service\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(units, path)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(units, path), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func powerOff(ctx context.Context, node *edgenode.Node) {
	GinkgoHelper()
	// The node is what is tested, not what containerd does not sync.
	_, err := node.Exec(ctx, "sync")
	Expect(err).NotTo(HaveOccurred())
	Expect(node.PowerCut(ctx)).To(Succeed())
}
