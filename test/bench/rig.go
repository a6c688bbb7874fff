package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/cluster"
	"rekindle.edge/test/internal/lab"
)

// A rig is the cluster that all runs share, with a node for each workload.
type rig struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	// objects reads and writes the product's kinds.
	objects client.Client
	// product says that the cluster has the product's kinds and rights.
	product bool
	// sites by the name of their node.
	sites map[string]*site
	// solo is the agent without a node; unset when no case needs it.
	solo *solo
	log  func(string, ...any)
}

// newRig starts everything that the cases need and saves the disks that runs start from.
func newRig(ctx context.Context, c config, log func(string, ...any)) (_ *rig, err error) {
	r := &rig{sites: map[string]*site{}, log: log}
	if r.cluster, err = cluster.Start(ctx, cluster.Options{Nodes: true, Log: log}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.client, err = kubernetes.NewForConfig(r.cluster.Admin()); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return nil, err
	}
	if r.objects, err = client.New(r.cluster.Admin(), client.Options{Scheme: scheme.Scheme}); err != nil {
		return nil, err
	}
	if err := r.createPriorityClass(ctx); err != nil {
		return nil, err
	}
	if c.installed() {
		if err := r.applyProduct(ctx); err != nil {
			return nil, err
		}
	}
	for _, bench := range c.cases {
		if bench.measure != nil {
			if r.solo == nil {
				if r.solo, err = newSolo(ctx, r, c); err != nil {
					return nil, err
				}
			}
			continue
		}
		load := bench.load()
		if r.sites[load.node] != nil {
			continue
		}
		s, err := newSite(ctx, r, c, load)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", load.node, err)
		}
		r.sites[load.node] = s
	}
	return r, nil
}

func (r *rig) close() error {
	if r.solo != nil {
		r.solo.stop()
	}
	return r.cluster.Stop()
}

// applyProduct gives the cluster the kinds and the nodes their rights. The manager does not
// run: the bench writes what it would make of a policy.
func (r *rig) applyProduct(ctx context.Context) error {
	root, err := lab.ModuleRoot()
	if err != nil {
		return err
	}
	for _, dir := range []string{"config/crd/bases", "config/rbac/node.yaml"} {
		cmd := exec.CommandContext(ctx, filepath.Join(r.cluster.Tools(), "kubectl"), "apply", "-f", filepath.Join(root, dir))
		cmd.Env = append(os.Environ(), "KUBECONFIG="+r.cluster.AdminKubeconfig())
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl apply -f %s: %w: %s", dir, err, output)
		}
	}
	r.product = true
	return nil
}

// load is the workload of the case.
func (c benchCase) load() workload {
	if c.workload != nil {
		return *c.workload
	}
	return plainPods
}

// installed says whether a case needs the agent.
func (c config) installed() bool {
	for _, bench := range c.cases {
		if bench.agent {
			return true
		}
	}
	return false
}
