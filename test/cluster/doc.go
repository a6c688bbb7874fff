// Package cluster starts a real Kubernetes control plane for tests: etcd,
// kube-apiserver (Node and RBAC authorizers, NodeRestriction), and with nodes
// also kube-controller-manager and kube-scheduler, as child processes with a CA
// of their own.
//
//	c, err := cluster.Start(ctx, cluster.Options{Nodes: true})
//	if err != nil { … }
//	defer c.Stop()
//	clientset, err := kubernetes.NewForConfig(c.Admin())
//
// Without Nodes it listens on 127.0.0.1 and needs no root. With Nodes it listens
// on an address of a network of its own, which nodes, their pods and the host reach.
package cluster
