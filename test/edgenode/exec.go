package edgenode

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"rekindle.edge/test/images"
)

// Exec runs a command on the node and gives its output; an error carries stderr.
func (n *Node) Exec(ctx context.Context, command ...string) (string, error) {
	return n.ExecInput(ctx, nil, command...)
}

// ExecInput is Exec with something to read on stdin.
func (n *Node) ExecInput(ctx context.Context, stdin io.Reader, command ...string) (string, error) {
	if n.boot == nil {
		return "", ErrOff
	}
	args := append([]string{"--target", strconv.Itoa(n.boot.pid1), "--all", "--",
		"env", "-i", "PATH=" + toolsInNode + ":/usr/local/bin:/usr/sbin:/usr/bin"}, command...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %s: %w: %s", n.Name, strings.Join(command, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Systemctl runs systemctl on the node.
func (n *Node) Systemctl(ctx context.Context, args ...string) error {
	_, err := n.Exec(ctx, append([]string{"systemctl"}, args...)...)
	return err
}

// KillKubelet kills kubelet's process and nothing else; systemd starts it again.
func (n *Node) KillKubelet(ctx context.Context) error {
	return n.Systemctl(ctx, "kill", "--kill-whom=main", "--signal=KILL", "kubelet.service")
}

// ImportImage puts an image into the node's containerd and syncs it to the disk.
func (n *Node) ImportImage(ctx context.Context, image images.Image) error {
	n.options.Log("%s: importing image %s", n.Name, image.Name)
	var archive bytes.Buffer
	if err := image.Write(&archive); err != nil {
		return err
	}
	if _, err := n.ExecInput(ctx, &archive, "ctr", "-n", "k8s.io", "images", "import", "-"); err != nil {
		return err
	}
	// containerd does not sync what it unpacks.
	_, err := n.Exec(ctx, "sync")
	return err
}
