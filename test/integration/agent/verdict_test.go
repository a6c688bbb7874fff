package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/host"
	"rekindle.edge/agent/localapi"
	"rekindle.edge/agent/readiness/dryrun"
	"rekindle.edge/agent/readiness/gather"
	"rekindle.edge/api/v1alpha1"
)

// flip is how soon the status must follow the cause.
const flip = 5 * time.Second

// imageStore is a container runtime that has every image, or none, or does not answer.
type imageStore struct{ empty, down atomic.Bool }

func (s *imageStore) Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error) {
	if s.down.Load() {
		return nil, errors.New("down")
	}
	return &runtimeapi.StatusResponse{}, nil
}

func (s *imageStore) ListImages(context.Context, *runtimeapi.ListImagesRequest, ...grpc.CallOption) (*runtimeapi.ListImagesResponse, error) {
	list := &runtimeapi.ListImagesResponse{}
	if !s.empty.Load() {
		list.Images = []*runtimeapi.Image{{Id: "sha256:1", Pinned: true}}
	}
	return list, nil
}

func (s *imageStore) ImageStatus(context.Context, *runtimeapi.ImageStatusRequest, ...grpc.CallOption) (*runtimeapi.ImageStatusResponse, error) {
	if s.empty.Load() {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: "sha256:1", Pinned: true}}, nil
}

func (s *imageStore) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest, ...grpc.CallOption) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{}, nil
}

// UnitFile implements gather.Units.
func (n *node) UnitFile(context.Context, string) (host.UnitFile, error) {
	return host.UnitFile{State: "enabled"}, nil
}

// judged has the node judged from now on.
func (n *node) judged(images *imageStore) {
	GinkgoHelper()
	n.stopAgent()
	n.judge = func() *dryrun.DryRun {
		settings := config.Default()
		settings.StateDir, settings.KubeletRootDir = n.path("state"), "/kubelet"
		return &dryrun.DryRun{Gatherer: &gather.Gatherer{
			Settings: settings, Root: n.path("root"), Runtime: images, Units: n, Now: n.clock.Wall,
			Identity: &localapi.IdentitySource{Kubeconfigs: []string{n.path("kubeconfig")}},
			Serving:  func() metav1.Condition { return metav1.Condition{Status: metav1.ConditionTrue} },
			Missed:   func() []v1alpha1.MissedResource { return nil },
		}}
	}
	n.startAgent()
}

// verdict is the condition RestartReady as it is in the status, and the first finding.
func (n *node) verdict() string {
	recovery, err := n.recovery()
	if err != nil {
		return err.Error()
	}
	status := recovery.Status
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionRestartReady)
	if ready == nil {
		return ""
	}
	text := string(ready.Status) + " " + ready.Reason
	if ready.Status == metav1.ConditionFalse && len(status.Findings) > 0 {
		text += " " + status.Findings[0].Pod + " " + status.Findings[0].Object
	}
	return text
}

var _ = Describe("The verdict", func() {
	It("follows its cause in the status within 5 s, back as well, and is not written while nothing changes", func() {
		images := &imageStore{}
		n := newNode()
		name := n.name + "-web"
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: n.name}, Data: map[string]string{"k": "v"}}
		Expect(admin.Create(ctx, settings)).To(Succeed())
		Expect(admin.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: corev1.PodSpec{NodeName: n.name, Containers: []corev1.Container{{Name: "main", Image: "example.com/web:1", EnvFrom: []corev1.EnvFromSource{{
				ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: n.name}},
			}}}}},
		})).To(Succeed())
		n.judged(images)
		wouldComeBack := "True " + v1alpha1.ReasonWouldComeBack
		Eventually(n.verdict).Should(Equal(wouldComeBack))

		By("an image that goes, and comes back")
		images.empty.Store(true)
		Eventually(n.verdict).WithTimeout(flip).Should(Equal("False " + v1alpha1.ReasonImageMissing + " default/" + name + " example.com/web:1"))
		images.empty.Store(false)
		Eventually(n.verdict).WithTimeout(flip).Should(Equal(wouldComeBack))

		By("an object that goes, and comes back")
		Expect(admin.Delete(ctx, settings)).To(Succeed())
		Eventually(n.verdict).WithTimeout(flip).Should(Equal("False " + v1alpha1.ReasonObjectMissing + " default/" + name + " configmaps/" + n.name))
		settings.ResourceVersion, settings.UID = "", ""
		Expect(admin.Create(ctx, settings)).To(Succeed())
		Eventually(n.verdict).WithTimeout(flip).Should(Equal(wouldComeBack))

		By("a runtime that does not answer")
		images.down.Store(true)
		Eventually(n.verdict).WithTimeout(flip).Should(Equal("Unknown " + v1alpha1.ReasonNotVisible))
		images.down.Store(false)
		Eventually(n.verdict).WithTimeout(flip).Should(Equal(wouldComeBack))

		By("nothing changes any more, once the store is sealed")
		Eventually(func() []v1alpha1.Finding {
			recovery, err := n.recovery()
			Expect(err).NotTo(HaveOccurred())
			return recovery.Status.Findings
		}).ShouldNot(ContainElement(HaveField("Reason", v1alpha1.ReasonNoSealedGeneration)))
		writes := n.writes()
		Consistently(n.writes).WithTimeout(2 * flip).Should(Equal(writes))

		By("an agent that is restarted keeps the verdict until it has its own")
		n.stopAgent()
		n.startAgent()
		Consistently(n.verdict).Should(Equal(wouldComeBack))
	})
})
