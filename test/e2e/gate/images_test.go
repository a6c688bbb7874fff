package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/test/edgenode"
	"rekindle.edge/test/images"
)

const lanAddress = "127.0.0.1:5001"

// pulledPod wants its image pulled each time.
func pulledPod(name, node, image, secret string) *corev1.Pod {
	pod := edgenode.WebPod(name, node)
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = image, corev1.PullAlways
	if secret != "" {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret}}
	}
	return pod
}

func createPullSecret(ctx context.Context, name, registry string) {
	GinkgoHelper()
	_, err := client.CoreV1().Secrets(metav1.NamespaceDefault).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, registry, registryUser, registryPassword)},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.CoreV1().Secrets(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
}

// pullRecords are kubelet's notes on who may use which image.
func (e *edge) pullRecords(ctx context.Context) string {
	GinkgoHelper()
	output, err := e.Exec(ctx, "bash", "-c", "cd /var/lib/kubelet/image_manager/pulled && for f in *; do echo; echo $f; cat $f; done")
	Expect(err).NotTo(HaveOccurred())
	return output
}

// containersOf counts the containers that a pod has or had.
func (e *edge) containersOf(ctx context.Context, pod string) int {
	GinkgoHelper()
	connection, err := e.CRI()
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = connection.Close() }()
	list, err := runtimeapi.NewRuntimeServiceClient(connection).ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"io.kubernetes.pod.name": pod}},
	})
	Expect(err).NotTo(HaveOccurred())
	return len(list.GetContainers())
}

var _ = Describe("Images that are to be pulled each time", func() {
	for _, policy := range []string{"NeverVerifyPreloadedImages", "AlwaysVerify"} {
		It("start from the node at once where their registry is silent, for pods that pulled them: "+policy, func(ctx SpecContext) {
			binary, err := images.BuildStatic(ctx, "rekindle.edge/test/images/web", GinkgoT().TempDir())
			Expect(err).NotTo(HaveOccurred())
			cloud, lan := newRegistry(images.Image{Name: "web", Binary: binary}), newRegistry(images.Image{Name: "web", Binary: binary})
			host := shared.Network().HostIP().String()
			cloudAddress := cloud.serve("", host+":0")
			mirrorAddress := cloud.serve("", host+":0")
			createPullSecret(ctx, "robot", "cloud.example")

			e := newEdge(ctx, "images-"+strings.ToLower(policy[:5]), true, func(root string) error {
				for name, content := range map[string]string{
					// A mirror that is silent once the node is cut off.
					"cloud.example": fmt.Sprintf("server = \"http://%s\"\n[host.\"http://%s\"]\n", cloudAddress, mirrorAddress),
					// A name server that is.
					"named.example": fmt.Sprintf("server = \"http://registry.named.example%s\"\n", cloudAddress[strings.LastIndex(cloudAddress, ":"):]),
					// A registry that is there all the same.
					"lan.example": "server = \"http://" + lanAddress + "\"\n",
				} {
					dir := filepath.Join(root, "/etc/containerd/certs.d", name)
					if err := os.MkdirAll(dir, 0o755); err != nil {
						return err
					}
					if err := os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(content), 0o600); err != nil {
						return err
					}
				}
				if err := os.WriteFile(filepath.Join(root, "/etc/nsswitch.conf"), []byte("hosts: files dns\n"), 0o600); err != nil {
					return err
				}
				return errors.Join(
					// On by default since 1.35.
					appendTo("/var/lib/kubelet/config.yaml", fmt.Sprintf("featureGates: {KubeletEnsureSecretPulledImages: true}\nimagePullCredentialsVerificationPolicy: %s\n", policy))(root),
					appendTo("/etc/hosts", fmt.Sprintf("%s registry.named.example\n", host))(root))
			})
			lan.serve(e.Name, lanAddress)
			Expect(e.ImportImage(ctx, images.Image{Name: "cloud.example/private-preloaded:1", Binary: binary, Args: []string{"-ready-after=0s"}})).To(Succeed())

			var pods []*corev1.Pod
			for _, name := range numbered("pulled", 3) {
				pods = append(pods, pulledPod(name, e.Name, "cloud.example/web:1", ""))
			}
			pods = append(pods,
				pulledPod("named", e.Name, "named.example/web:1", ""),
				pulledPod("near", e.Name, "lan.example/web:1", ""),
				pulledPod("private", e.Name, "cloud.example/private:1", "robot"))
			e.create(ctx, pods...)
			for name, image := range map[string]string{"thief": "cloud.example/private:1", "thief-preloaded": "cloud.example/private-preloaded:1"} {
				_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pulledPod(name, e.Name, image, ""), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Eventually(ctx, func(g Gomega) {
					pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
					g.Expect(pod.Status.ContainerStatuses[0].State.Waiting).To(HaveField("Reason", BeElementOf("ErrImagePull", "ImagePullBackOff")))
				}).WithTimeout(soon).WithPolling(poll).Should(Succeed(), e.journal)
			}
			e.settle(ctx)
			before, asked := e.pullRecords(ctx), lan.manifests()

			Expect(e.PowerCut(ctx)).To(Succeed())
			Expect(e.CutWAN(ctx, edgenode.WANBlackhole)).To(Succeed())
			Expect(e.EditDisk(ctx, func(root string) error {
				return os.WriteFile(filepath.Join(root, "/etc/hosts"), []byte("127.0.0.1 localhost\n"), 0o600)
			})).To(Succeed())
			Expect(e.EditDisk(ctx, func(root string) error {
				return os.WriteFile(filepath.Join(root, "/etc/resolv.conf"), []byte("nameserver "+host+"\n"), 0o600)
			})).To(Succeed())
			_, err = e.Boot(ctx)
			Expect(err).NotTo(HaveOccurred())
			lan.serve(e.Name, lanAddress)
			names := append(numbered("pulled", 3), "named", "near", "private")
			took := e.waitReady(ctx, soon, names...)
			AddReportEntry("last pod Ready after kernel start", took.String())
			Expect(took).To(BeNumerically("<", 25*time.Second), "containerd gives a silent registry 30 s")
			Expect(lan.manifests()).To(BeNumerically(">", asked), "the registry that answers was not asked")
			Consistently(ctx, func() int { return e.containersOf(ctx, "thief") + e.containersOf(ctx, "thief-preloaded") }).
				WithTimeout(5*time.Second).WithPolling(time.Second).Should(BeZero(), "a pod runs with an image that it could not have pulled")
			Expect(e.pullRecords(ctx)).To(Equal(before), "kubelet was led to note a pull that was none")
		}, SpecTimeout(5*time.Minute))
	}
})
