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

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/internal/cloud"
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
	Expect(v1alpha1.AddToScheme(scheme.Scheme)).To(Succeed())
	var err error
	c, err = client.New(cloud.Start(cloud.WithCRDs).Config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
})
