// Package agent runs the agent against a real API server with the identity of a node, and a
// node that is played: a container runtime that speaks CRI over a socket, a kubelet that is
// a process id, a health endpoint and status writes, and clocks that can be moved.
package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"rekindle.edge/api/v1alpha1"
)

const (
	root = "../../.."
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

	env = &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(root, "config/crd/bases")}, ErrorIfCRDPathMissing: true}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		env.BinaryAssetsDirectory = filepath.Join(root, "bin", "tools")
	}
	server := env.ControlPlane.GetAPIServer().Configure()
	server.Set("authorization-mode", "Node", "RBAC")
	server.Append("enable-admission-plugins", "NodeRestriction")
	_, err := env.Start()
	Expect(err).NotTo(HaveOccurred(), "run `make test`, which builds etcd and kube-apiserver")
	DeferCleanup(env.Stop)

	user, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: 1000, Burst: 1000})
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(user.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	create(filepath.Join(root, "config/rbac/node.yaml"))
	create(filepath.Join(root, "config/admission/node-writes-own-status.yaml"))
})

// create makes the objects of a file.
func create(path string) {
	GinkgoHelper()
	data, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		if len(object.Object) > 0 {
			Expect(admin.Create(ctx, object)).To(Succeed())
		}
	}
}
