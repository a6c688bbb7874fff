package edgenode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"rekindle.edge/test/internal/lab"
)

const (
	kubeconfigPath = "/var/lib/kubelet/kubeconfig"
	clientPEMPath  = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	agentPath      = "/usr/local/bin/rekindle-agent"
	unitDir        = "/etc/systemd/system"
)

// populate fills the mounted disk of a new node.
func (n *Node) populate(ctx context.Context) error {
	for _, step := range []func(context.Context) error{n.populateBase, n.populateKubernetes, n.populateAgent} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// populateBase gives what any Linux node has.
func (n *Node) populateBase(context.Context) error {
	for _, dir := range []string{
		"usr", "proc", "sys", "dev", "run", "tmp", "root", "opt/edge/bin", "local-bin",
		"var/log/witness", "var/lib", "var/tmp", "etc/kubernetes/manifests", "etc/rekindle",
	} {
		if err := os.MkdirAll(filepath.Join(n.root(), dir), 0o755); err != nil {
			return err
		}
	}
	for path, target := range map[string]string{
		"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "var/run": "../run",
		"etc/os-release": "../usr/lib/os-release", "etc/mtab": "../proc/self/mounts",
		unitDir + "/default.target": "/usr/lib/systemd/system/multi-user.target",
	} {
		if err := symlink(target, filepath.Join(n.root(), path)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"lib32", "lib64", "libx32"} {
		if _, err := os.Stat("/usr/" + dir); err == nil {
			if err := symlink("usr/"+dir, filepath.Join(n.root(), dir)); err != nil {
				return err
			}
		}
	}
	for _, file := range []string{"/etc/passwd", "/etc/group", "/etc/ld.so.cache"} {
		if err := copyFile(file, filepath.Join(n.root(), file), 0o644); err != nil {
			return err
		}
	}
	// Where Debian's iptables and the like really are.
	if err := copyLinks("/etc/alternatives", filepath.Join(n.root(), "etc/alternatives")); err != nil {
		return err
	}
	return n.writeAll(map[string]string{
		"/etc/machine-id":    machineID(),
		"/etc/hostname":      n.Name + "\n",
		"/etc/hosts":         fmt.Sprintf("127.0.0.1 localhost\n%s %s\n", n.IP(), n.Name),
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
		"/etc/fstab":         "",
		"/etc/resolv.conf":   "",
		// The machine's kernel log is not the node's.
		"/etc/systemd/journald.conf": "[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\n",
		// A container that ignores SIGTERM must not hold an orderly reboot for the usual 90 s.
		"/etc/systemd/system.conf": "[Manager]\nDefaultTimeoutStopSec=20s\n",
	})
}

// populateKubernetes gives the node's identity, configuration and units.
func (n *Node) populateKubernetes(context.Context) error {
	credentials, err := n.cluster.NodeCredentials(n.Name, clientPEMPath)
	if err != nil {
		return err
	}
	files := map[string]string{
		kubeconfigPath:               string(credentials.Kubeconfig),
		clientPEMPath:                string(credentials.ClientPEM),
		"/etc/kubernetes/pki/ca.crt": string(credentials.CA),
	}
	rendered := map[string]string{
		"containerd.service": unitDir + "/containerd.service",
		"kubelet.service":    unitDir + "/kubelet.service",
		"kubelet.yaml":       "/var/lib/kubelet/config.yaml",
		"containerd.toml":    "/etc/containerd/config.toml",
		"cni.conflist":       "/etc/cni/net.d/10-pods.conflist",
	}
	enabled := []string{"containerd.service", "kubelet.service"}
	if n.options.KubeProxy {
		kubeconfig, err := n.cluster.ProxyKubeconfig()
		if err != nil {
			return err
		}
		files["/var/lib/kube-proxy/kubeconfig"] = string(kubeconfig)
		rendered["kube-proxy.yaml"] = "/var/lib/kube-proxy/config.yaml"
		rendered["kube-proxy.service"] = unitDir + "/kube-proxy.service"
		enabled = append(enabled, "kube-proxy.service")
	}
	if n.options.Logind {
		for _, unit := range []string{"dbus.socket", "dbus.service", "systemd-logind.service"} {
			rendered[unit] = unitDir + "/" + unit
		}
		// D-Bus starts logind by this name.
		if err := symlink("systemd-logind.service", filepath.Join(n.root(), unitDir, "dbus-org.freedesktop.login1.service")); err != nil {
			return err
		}
		if err := symlink(unitDir+"/dbus.socket", filepath.Join(n.root(), unitDir, "sockets.target.wants/dbus.socket")); err != nil {
			return err
		}
	}
	for name, path := range rendered {
		content, err := render(name, n.settings())
		if err != nil {
			return err
		}
		files[path] = string(content)
	}
	if err := n.writeAll(files); err != nil {
		return err
	}
	for _, unit := range enabled {
		if err := symlink(unitDir+"/"+unit, filepath.Join(n.root(), unitDir, "multi-user.target.wants", unit)); err != nil {
			return err
		}
	}
	return nil
}

// populateAgent installs rekindle-agent as its own files describe it.
func (n *Node) populateAgent(ctx context.Context) error {
	agent := n.options.Agent
	if agent == nil {
		return nil
	}
	if err := copyFile(agent.Binary, filepath.Join(n.root(), "local-bin", filepath.Base(agentPath)), 0o755); err != nil {
		return err
	}
	for i, file := range agent.Units {
		unit := filepath.Base(file)
		if err := copyFile(file, filepath.Join(n.root(), unitDir, unit), 0o644); err != nil {
			return err
		}
		if i == 0 {
			if _, err := lab.Run(ctx, "systemctl", "--root="+n.root(), "enable", unit); err != nil {
				return err
			}
		}
	}
	const log = "append:/var/log/witness/agent.log"
	return n.writeAll(map[string]string{
		"/etc/rekindle/agent.yaml":                         string(agent.Config),
		unitDir + "/rekindle-agent.service.d/witness.conf": "[Service]\nStandardOutput=" + log + "\nStandardError=" + log + "\n",
	})
}

func (n *Node) writeAll(files map[string]string) error {
	for path, content := range files {
		if err := writeFile(filepath.Join(n.root(), path), []byte(content), 0o600); err != nil {
			return err
		}
		if filepath.Dir(path) != filepath.Dir(clientPEMPath) && path != kubeconfigPath {
			if err := os.Chmod(filepath.Join(n.root(), path), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
