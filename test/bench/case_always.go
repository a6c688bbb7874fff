package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/test/images"
)

// pulledImage is the web server's, to be had from the bench's own registry while the node
// is linked.
const pulledHost, pulledImage = "registry.bench", "registry.bench/web:1"

// alwaysPods want their image pulled at each start.
var alwaysPods = workload{
	node: "bench-always",
	disk: serveRegistry,
	shape: func(s *site, number int, pod *corev1.Pod) {
		plainPods.shape(s, number, pod)
		pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = pulledImage, corev1.PullAlways
	},
}

// alwaysOffline is rekindle-offline with imagePullPolicy: Always. The registry is out of
// reach like everything else.
var alwaysOffline = benchCase{
	name:     "always-offline",
	workload: &alwaysPods,
	agent:    true,
	limit:    2 * time.Minute,
	offline:  true,
	ready:    all,
}

// serveRegistry starts the registry and tells the node where it is.
func serveRegistry(s *site, root string) error {
	dir := s.cluster.Lab().Dir
	binary, err := images.BuildStatic(context.Background(), "rekindle.edge/test/images/web", filepath.Join(dir, "images"))
	if err != nil {
		return err
	}
	registry := &images.Registry{}
	if err := registry.Push("web", "1", images.Image{Name: pulledImage, Binary: binary}); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(s.cluster.Network().HostIP().String(), "0"))
	if err != nil {
		return err
	}
	// It ends with the bench.
	go func() { _ = http.Serve(listener, registry) }() //nolint:gosec // nobody but the node asks it
	hosts := filepath.Join(root, "etc/containerd/certs.d", pulledHost)
	if err := os.MkdirAll(hosts, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(hosts, "hosts.toml"), fmt.Appendf(nil, "server = \"http://%s\"\n", listener.Addr()), 0o600)
}
