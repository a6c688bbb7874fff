package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/internal/lab"
)

const (
	soloNode = "solo"
	// soloSlot is a place in the network that no node of the bench reaches.
	soloSlot = lab.MaxNodes
	// The local API, as the installed agent has it.
	localAddress, linkLocalAddress = "127.0.0.1:7443", "169.254.77.43:7443"
	soloStop                       = 5 * time.Second
)

// A solo is an agent without a node: the program as systemd would run it, with sockets and
// a watchdogless unit's arguments, in network and mount namespaces of its own. The cluster
// has its Node with as many objects as an edge node may have.
type solo struct {
	*rig
	dir   string
	netns string
	agent string
	idle  time.Duration

	listeners []*os.File
	process   *lab.Process
	// runtime is containerd, which has no pods; unset until it is needed.
	runtime *lab.Process
	starts  int
}

// newSolo fills the cluster and lets an agent mirror it all.
func newSolo(ctx context.Context, r *rig, c config) (*solo, error) {
	if err := r.applyProduct(ctx); err != nil {
		return nil, err
	}
	agent, err := filepath.Abs(c.agent)
	if err != nil {
		return nil, err
	}
	s := &solo{rig: r, dir: filepath.Join(r.cluster.Lab().Dir, soloNode), netns: r.cluster.Lab().NetNS(soloNode), agent: agent, idle: c.idle}
	for _, command := range [][]string{{"ip", "netns", "add", s.netns}, {"mkdir", "-p", filepath.Join(s.dir, "kubelet", "pki")}} {
		if _, err := lab.Run(ctx, command[0], command[1:]...); err != nil {
			return nil, err
		}
	}
	if err := r.cluster.Network().Attach(ctx, soloSlot, s.netns); err != nil {
		return nil, err
	}
	if err := errors.Join(s.writeFiles(), s.listen()); err != nil {
		return nil, err
	}
	if err := s.fillCluster(ctx); err != nil {
		return nil, err
	}
	return s, s.mirrorAll(ctx)
}

// writeFiles gives the agent what it finds on a node that has joined.
func (s *solo) writeFiles() error {
	pem := s.file("kubelet/pki/kubelet-client-current.pem")
	credentials, err := s.cluster.NodeCredentials(soloNode, pem)
	if err != nil {
		return err
	}
	settings := fmt.Sprintf("kubeconfig: %s\nstateDir: %s\nkubeletRootDir: %s\ncriEndpoint: unix://%s\n",
		s.file("kubeconfig"), s.file("state"), s.file("kubelet"), s.file("containerd.sock"))
	for path, content := range map[string][]byte{
		pem: credentials.ClientPEM, s.file("kubeconfig"): credentials.Kubeconfig, s.file("agent.yaml"): []byte(settings),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (s *solo) file(name string) string { return filepath.Join(s.dir, name) }

// listen opens the sockets that systemd would hold: they outlive the agent.
func (s *solo) listen() error {
	return lab.Inside(s.netnsPath(), func() error {
		for _, address := range []string{localAddress, linkLocalAddress} {
			config := net.ListenConfig{Control: freeBind}
			listener, err := config.Listen(context.Background(), "tcp", address)
			if err != nil {
				return err
			}
			defer listener.Close()
			tcp, ok := listener.(*net.TCPListener)
			if !ok {
				return fmt.Errorf("%s is no TCP socket", address)
			}
			file, err := tcp.File()
			if err != nil {
				return err
			}
			s.listeners = append(s.listeners, file)
		}
		return nil
	})
}

func (s *solo) netnsPath() string { return "/run/netns/" + s.netns }

// launch does what a boot does: /run is empty, the boot id a new one, and nobody has a key
// to seal with. The word on stdin makes the shell the agent, whose process id systemd tells.
const launch = `
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib/systemd
mount --bind "$BOOT_ID" /proc/sys/kernel/random/boot_id
echo ready >&5
exec 5>&-
read -r go
export LISTEN_PID=$$
exec "$AGENT" run --wire --config "$CONFIG"
`

// start starts the agent in a new boot. It gives the moment at which the program began.
func (s *solo) start() (time.Time, error) {
	s.starts++
	bootID := s.file(fmt.Sprintf("boot_id-%d", s.starts))
	if err := os.WriteFile(bootID, []byte(uuid.NewString()+"\n"), 0o644); err != nil {
		return time.Time{}, err
	}
	cmd := exec.Command("nsenter", "--net="+s.netnsPath(), "unshare", "--mount", "--propagation", "private", "sh", "-euc", launch)
	cmd.Env = append(os.Environ(), "BOOT_ID="+bootID, "AGENT="+s.agent, "CONFIG="+s.file("agent.yaml"), "LISTEN_FDS=2")
	ready, readyEnd, err := os.Pipe()
	if err != nil {
		return time.Time{}, err
	}
	defer ready.Close()
	cmd.ExtraFiles = append(append(cmd.ExtraFiles, s.listeners...), readyEnd)
	word, err := cmd.StdinPipe()
	if err != nil {
		return time.Time{}, err
	}
	s.process, err = s.cluster.Lab().Start(fmt.Sprintf("solo-%d", s.starts), cmd)
	readyEnd.Close()
	if err != nil {
		return time.Time{}, err
	}
	if _, err := bufio.NewReader(ready).ReadByte(); err != nil {
		return time.Time{}, s.process.Err()
	}
	began := time.Now()
	_, err = fmt.Fprintln(word, "go")
	return began, err
}

// startRuntime gives the agent a container runtime, as every node has one.
func (s *solo) startRuntime() (err error) {
	if s.runtime != nil {
		return nil
	}
	cmd := exec.Command(filepath.Join(s.cluster.Tools(), "containerd"), "--config", os.DevNull,
		"--root", s.file("containerd"), "--state", s.file("containerd-state"), "--address", s.file("containerd.sock"))
	s.runtime, err = s.cluster.Lab().Start("solo-containerd", cmd)
	return err
}

// kill ends the agent as a power cut does, save for what the kernel has yet to write.
func (s *solo) kill() {
	if s.process != nil {
		s.process.Kill()
		s.process = nil
	}
}

// stop ends the agent in order.
func (s *solo) stop() {
	if s.process != nil {
		s.process.Stop(soloStop)
		s.process = nil
	}
}

// setWAN cuts the link or, with wanUp, restores it.
func (s *solo) setWAN(ctx context.Context, wan string) error {
	mode := edgenode.WANMode(wan)
	if wan == wanUp {
		mode = lab.WANUp
	}
	return s.cluster.Network().SetWAN(ctx, soloSlot, s.netns, mode)
}
