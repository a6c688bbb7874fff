// Package cloud is the API server of integration specs, and the way that a node has to it.
// Its functions fail the running spec.
package cloud

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"rekindle.edge/test/internal/lab"
)

// Start starts an API server for the suite.
func Start(change ...func(*envtest.Environment)) *envtest.Environment {
	GinkgoHelper()
	env := &envtest.Environment{}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		env.BinaryAssetsDirectory = path("bin/tools")
	}
	for _, change := range change {
		change(env)
	}
	_, err := env.Start()
	Expect(err).NotTo(HaveOccurred(), "run `make test`, which builds etcd, kube-apiserver and kubectl")
	DeferCleanup(env.Stop)
	return env
}

// WithCRDs has the product's kinds there.
func WithCRDs(env *envtest.Environment) {
	env.CRDDirectoryPaths, env.ErrorIfCRDPathMissing = []string{path("config/crd/bases")}, true
}

// WithNodes has nodes confined to what is theirs, as every cluster has.
func WithNodes(env *envtest.Environment) {
	server := env.ControlPlane.GetAPIServer().Configure()
	server.Set("authorization-mode", "Node", "RBAC")
	server.Append("enable-admission-plugins", "NodeRestriction")
}

// Create makes the objects of a manifest of the product's, a path in its repository.
func Create(ctx context.Context, admin client.Client, manifest string) {
	GinkgoHelper()
	data, err := os.ReadFile(path(manifest))
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

func path(inRepository string) string {
	GinkgoHelper()
	root, err := lab.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	return filepath.Join(root, inRepository)
}
