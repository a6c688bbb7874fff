// Package operator tells stories of users against a real API server with the controllers
// running: who writes what, and how often.
package operator

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/internal/cloud"
)

var (
	ctx        = context.Background()
	restConfig *rest.Config
	scheme     = runtime.NewScheme()
	c          client.Client
	// operator is the running manager.
	operator = &manager{}
)

func TestOperator(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Operator")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())

	restConfig = cloud.Start(cloud.WithCRDs).Config
	var err error
	c, err = client.New(restConfig, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	operator.start()
	DeferCleanup(operator.stop)
})
