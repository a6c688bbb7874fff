// Package install shows on a real API server what `kubectl apply -k config/default` sets up:
// that it applies twice, what nodes, users and the manager may do by it, and that the
// manager works with no more than that.
package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/internal/cloud"
)

const (
	root = "../../.."
	// A new admission policy or role is in force a moment after it is written.
	inForce = 20 * time.Second
)

var (
	ctx    = context.Background()
	env    *envtest.Environment
	scheme = runtime.NewScheme()
	// admin may do everything; its kubeconfig is in adminConfig.
	admin       client.Client
	adminConfig string
	// firstApply is what the first `kubectl apply -k config/default` printed.
	firstApply string
)

func TestInstall(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Install")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(GinkgoLogr)
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())

	env = cloud.Start(cloud.WithNodes)

	var user *envtest.AuthenticatedUser
	admin, user = as("admin", "system:masters")
	adminConfig = kubeconfig(user)
	firstApply = kubectl("apply", "-k", filepath.Join(root, "config", "default"))
})

// as returns a client with a certificate for that user, and the user.
func as(name string, groups ...string) (client.Client, *envtest.AuthenticatedUser) {
	GinkgoHelper()
	user, err := env.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: 1000, Burst: 1000})
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(user.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c, user
}

// kubeconfig writes a kubeconfig of that user and returns its path.
func kubeconfig(user *envtest.AuthenticatedUser) string {
	GinkgoHelper()
	content, err := user.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	file, err := os.CreateTemp("", "rekindle-kubeconfig-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.Remove, file.Name())
	_, err = file.Write(content)
	Expect(err).NotTo(HaveOccurred())
	Expect(file.Close()).To(Succeed())
	return file.Name()
}

// kubectl runs the real kubectl as admin and returns what it printed.
func kubectl(args ...string) string {
	GinkgoHelper()
	path := env.ControlPlane.KubectlPath
	Expect(path).NotTo(BeEmpty())
	command := exec.Command(path, append([]string{"--kubeconfig", adminConfig}, args...)...)
	// kubectl keeps what it discovers below HOME; tests leave nothing there.
	command.Env = append(os.Environ(), "HOME="+GinkgoT().TempDir())
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %s\n%s", strings.Join(args, " "), output)
	return string(output)
}
