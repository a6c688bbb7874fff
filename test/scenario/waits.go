package scenario

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/edgenode"
)

// CreatePods creates count web pods on the node, named web-00 and so on, and returns
// when all are Ready.
func (p *Product) CreatePods(ctx context.Context, node string, count int) error {
	p.log("creating %d pods on %s", count, node)
	for i := range count {
		if err := p.Client.Create(ctx, edgenode.WebPod(fmt.Sprintf("web-%02d", i), node)); err != nil {
			return err
		}
	}
	return p.WaitPodsReady(ctx, node, count, 2*time.Minute)
}

// WaitPodsReady waits until count pods of namespace default on the node are Ready.
func (p *Product) WaitPodsReady(ctx context.Context, node string, count int, timeout time.Duration) error {
	return eventually(ctx, timeout, fmt.Sprintf("%d pods on %s to be Ready", count, node), func() error {
		var pods corev1.PodList
		if err := p.Client.List(ctx, &pods, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{"spec.nodeName": node}); err != nil {
			return err
		}
		ready := 0
		for _, pod := range pods.Items {
			if Ready(&pod) {
				ready++
			}
		}
		if ready < count {
			return fmt.Errorf("%d are", ready)
		}
		return nil
	})
}

// NodeRecovery reads the node's object.
func (p *Product) NodeRecovery(ctx context.Context, node string) (*v1alpha1.NodeRecovery, error) {
	var recovery v1alpha1.NodeRecovery
	err := p.Client.Get(ctx, client.ObjectKey{Name: node}, &recovery)
	return &recovery, err
}

// WaitObserved waits until the node's agent has taken over its NodeRecovery's spec.
func (p *Product) WaitObserved(ctx context.Context, node string) error {
	return eventually(ctx, time.Minute, "the agent of "+node+" to take over its spec", func() error {
		nrec, err := p.NodeRecovery(ctx, node)
		if err != nil {
			return err
		}
		if nrec.Status.ObservedGeneration != nrec.Generation {
			return fmt.Errorf("it has observed generation %d of %d", nrec.Status.ObservedGeneration, nrec.Generation)
		}
		return nil
	})
}

// WaitRestartReady waits until the node's verdict is that it would come back, and gives the
// verdict's message.
func (p *Product) WaitRestartReady(ctx context.Context, node string) (string, error) {
	var message string
	err := eventually(ctx, 90*time.Second, node+" to be one that would come back", func() error {
		nrec, err := p.NodeRecovery(ctx, node)
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(nrec.Status.Conditions, v1alpha1.ConditionRestartReady)
		if ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("verdict %+v, findings %+v", ready, nrec.Status.Findings)
		}
		message = ready.Message
		return nil
	})
	return message, err
}

// WaitReadyHere waits until count pods have turned ready in this boot by kubelet's own log,
// which needs no link.
func WaitReadyHere(ctx context.Context, boot *edgenode.Boot, count int) error {
	return eventually(ctx, 2*time.Minute, fmt.Sprintf("%d pods to be ready in this boot", count), func() error {
		witness, err := boot.Witness()
		if err != nil {
			return err
		}
		if len(witness.Ready) < count {
			return fmt.Errorf("%d are", len(witness.Ready))
		}
		return nil
	})
}

// WaitRecovery waits until the node's status has the finished record of a boot.
func (p *Product) WaitRecovery(ctx context.Context, node, bootID string, timeout time.Duration) (*v1alpha1.Recovery, error) {
	var found *v1alpha1.Recovery
	err := eventually(ctx, timeout, "the recovery of boot "+bootID+" in the status of "+node, func() error {
		nrec, err := p.NodeRecovery(ctx, node)
		if err != nil {
			return err
		}
		for i, r := range nrec.Status.Recoveries {
			if r.BootID == bootID && r.Result != "" {
				found = &nrec.Status.Recoveries[i]
				return nil
			}
		}
		return fmt.Errorf("the status has %d recoveries, none is it", len(nrec.Status.Recoveries))
	})
	return found, err
}

// WaitPolicyMeasured waits until the policy's status has a percentile.
func (p *Product) WaitPolicyMeasured(ctx context.Context, policy string) error {
	return eventually(ctx, time.Minute, "a measured p95 in the status of policy "+policy, func() error {
		var erp v1alpha1.EdgeRecoveryPolicy
		if err := p.Client.Get(ctx, client.ObjectKey{Name: policy}, &erp); err != nil {
			return err
		}
		if erp.Status.P95Milliseconds == nil || erp.Status.Nodes.RestartReady == 0 {
			return fmt.Errorf("p95 %v, nodes: %+v", erp.Status.P95Milliseconds, erp.Status.Nodes)
		}
		return nil
	})
}
