// Package api shows against a real API server what the schemas of the two kinds accept,
// refuse and default.
package api

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"rekindle.edge/api/v1alpha1"
)

var (
	ctx = context.Background()
	c   client.Client
)

func TestAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "API validation")
}

var _ = BeforeSuite(func() {
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{"../../../config/crd/bases"},
		ErrorIfCRDPathMissing: true,
	}
	cfg, err := env.Start()
	Expect(err).NotTo(HaveOccurred(), "run `make test`, which builds etcd and kube-apiserver and sets KUBEBUILDER_ASSETS")
	DeferCleanup(env.Stop)

	Expect(v1alpha1.AddToScheme(scheme.Scheme)).To(Succeed())
	c, err = client.New(cfg, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
})
