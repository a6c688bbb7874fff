package edgenode

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"rekindle.edge/test/images"
	"rekindle.edge/test/internal/lab"
)

const (
	pollInterval = 100 * time.Millisecond
	// readyTimeout bounds the start of containerd and of the Node on a busy machine.
	readyTimeout = 2 * time.Minute
)

// FirstBoot boots a new node, gives it the standard images and the extra ones, and
// returns when its Node is Ready and what that took is on the disk: kubelet does not sync
// the serving certificate that it makes, and one that loses its power within seconds finds
// an empty file at the next boot and never starts again.
func (n *Node) FirstBoot(ctx context.Context, extra ...images.Image) (*Boot, error) {
	standard, err := images.Standard(ctx, filepath.Join(n.cluster.Lab().Dir, "images"))
	if err != nil {
		return nil, err
	}
	boot, err := n.Boot(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.WaitRuntime(ctx); err != nil {
		return nil, err
	}
	for _, image := range append(standard, extra...) {
		if err := n.ImportImage(ctx, image); err != nil {
			return nil, err
		}
	}
	if err := n.WaitReady(ctx); err != nil {
		return nil, err
	}
	_, err = n.Exec(ctx, "sync")
	return boot, err
}

// WaitRuntime waits until containerd answers.
func (n *Node) WaitRuntime(ctx context.Context) error {
	return n.wait(ctx, "containerd to answer", containerdLog, func(ctx context.Context) error {
		_, err := n.Exec(ctx, "ctr", "version")
		return err
	})
}

// WaitReady waits until the API server has the Node Ready in its present boot.
func (n *Node) WaitReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.cluster.Admin())
	if err != nil {
		return err
	}
	return n.wait(ctx, "the Node to be Ready", kubeletLog, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if node.Status.NodeInfo.BootID != n.boot.ID {
			return fmt.Errorf("its boot id is %s, not %s", node.Status.NodeInfo.BootID, n.boot.ID)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				return errors.New(condition.Message)
			}
		}
		return nil
	})
}

// wait polls until probe gives no error; when that takes too long the error has
// the last lines of the log that is likely to tell why.
func (n *Node) wait(ctx context.Context, what, log string, probe func(context.Context) error) error {
	if n.boot == nil {
		return ErrOff
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-n.boot.process.Done():
			return fmt.Errorf("node %s: waiting for %s: %w", n.Name, what, n.boot.process.Err())
		case <-ctx.Done():
			return fmt.Errorf("node %s: waiting for %s: %w; last lines of %s:\n%s",
				n.Name, what, err, log, lab.Tail(filepath.Join(n.boot.Logs, log), 15))
		case <-time.After(pollInterval):
		}
	}
}
