// Package agent runs the agent against a real API server with the identity of a node, and a
// node that is played: a container runtime that speaks CRI over a socket, a kubelet that is
// a process id, a health endpoint and status writes, and clocks that can be moved.
package agent

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/internal/cloud"
)

const (
	// soon bounds what the agent does at once, on a machine that is busy.
	soon = 20 * time.Second
	// quiet is how long nothing must happen.
	quiet = 3 * time.Second
	poll  = 50 * time.Millisecond
)

var (
	ctx    = context.Background()
	env    *envtest.Environment
	scheme = runtime.NewScheme()
	admin  client.Client
)

func TestAgent(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Agent")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(poll)
	SetDefaultConsistentlyDuration(quiet)
	SetDefaultConsistentlyPollingInterval(poll)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())

	env = cloud.Start(cloud.WithCRDs, cloud.WithNodes)
	user, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: 1000, Burst: 1000})
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(user.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	cloud.Create(ctx, admin, "config/rbac/node.yaml")
	cloud.Create(ctx, admin, "config/admission/node-writes-own-status.yaml")
})
