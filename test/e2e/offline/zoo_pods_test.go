package offline

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"rekindle.edge/test/images"
)

func (p podMaker) env(vars ...corev1.EnvVar) podMaker {
	p.web().Env = append(p.web().Env, vars...)
	return p
}

func (p podMaker) envFrom(sources ...corev1.EnvFromSource) podMaker {
	p.web().EnvFrom = append(p.web().EnvFrom, sources...)
	return p
}

// init adds a container that runs before the others.
func (p podMaker) init(name string, policy *corev1.ContainerRestartPolicy, args ...string) podMaker {
	p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
		Name: name, Image: images.Web, ImagePullPolicy: corev1.PullIfNotPresent, RestartPolicy: policy,
		Args:         append([]string{"-runs=" + runsOf(p.Name, name)}, args...),
		VolumeMounts: []corev1.VolumeMount{{Name: "runs", MountPath: runsDir}},
	})
	return p
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

// zoo is a pod for each thing that a pod may want of the API, of its volumes, or of
// kubelet.
func zoo() []podMaker {
	secret := func(key string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("zoo-secret"), Key: key}}
	}
	inits := makePod("zoo-init").
		init("before", nil, "-exit=0").
		init("beside", ptr.To(corev1.ContainerRestartPolicyAlways), "-listen=:8081")

	secrets := makePod("zoo-secret").
		env(corev1.EnvVar{Name: "PASSWORD", ValueFrom: secret("password")}).
		envFrom(corev1.EnvFromSource{Prefix: "S_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("zoo-secret")}}).
		volume("secret", "/secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "zoo-secret"}})
	secrets.Spec.ImagePullSecrets = []corev1.LocalObjectReference{named("zoo-registry"), named("zoo-no-registry")}

	configs := makePod("zoo-config").
		env(corev1.EnvVar{Name: "SHAPE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("zoo-config"), Key: "shape"}}},
			corev1.EnvVar{Name: "NONE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("zoo-none"), Key: "shape", Optional: ptr.To(true)}}}).
		envFrom(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("zoo-config")}},
			corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("zoo-none"), Optional: ptr.To(true)}}).
		volume("config", "/config", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("zoo-config")}}).
		volume("none", "/none", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "zoo-none", Optional: ptr.To(true)}})

	projected := makePod("zoo-token").volume("mixed", "/mixed", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", ExpirationSeconds: ptr.To(int64(1200)), Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("zoo-config")}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: named("zoo-secret"), Items: []corev1.KeyToPath{{Key: "password", Path: "password"}}}},
	}}})
	projected.Spec.ServiceAccountName = "zoo"

	downward := makePod("zoo-downward").
		env(fieldEnv("NAME", "metadata.name"), fieldEnv("NODE", "spec.nodeName"), fieldEnv("IP", "status.podIP"),
			corev1.EnvVar{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "requests.cpu", Divisor: resource.MustParse("1m")}}}).
		volume("info", "/info", corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		}}})
	downward.web().Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7m")}

	claim := makePod("zoo-claim").volume("claim", "/claim", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "zoo"}})

	return []podMaker{inits, secrets, configs, projected, downward, claim}
}

// jobs are pods that end: they have, or do so when the power is cut.
func jobs() (ended, running []podMaker) {
	return []podMaker{
			makePod("job-never").once(corev1.RestartPolicyNever, "-exit=0"),
			makePod("job-on-failure").once(corev1.RestartPolicyOnFailure, "-exit=0"),
			makePod("job-failed").once(corev1.RestartPolicyNever, "-exit=3"),
		}, []podMaker{
			makePod("job-running").once(corev1.RestartPolicyNever),
		}
}

// createZooObjects makes what the zoo refers to.
func createZooObjects(ctx context.Context) {
	GinkgoHelper()
	core := client.CoreV1()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	const space = metav1.NamespaceDefault
	made := func(_ runtime.Object, err error) {
		GinkgoHelper()
		Expect(err).NotTo(HaveOccurred())
	}
	made(core.Secrets(space).Create(ctx, &corev1.Secret{ObjectMeta: meta("zoo-secret"), StringData: map[string]string{"password": "hunter2"}}, metav1.CreateOptions{}))
	made(core.Secrets(space).Create(ctx, &corev1.Secret{
		ObjectMeta: meta("zoo-registry"), Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: `{"auths":{"registry.example":{"auth":"dTpw"}}}`},
	}, metav1.CreateOptions{}))
	made(core.ConfigMaps(space).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta("zoo-config"), Data: map[string]string{"shape": "round"}}, metav1.CreateOptions{}))
	made(core.ServiceAccounts(space).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta("zoo")}, metav1.CreateOptions{}))
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	made(core.PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: meta("zoo"),
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: "/var/lib/claim", Type: ptr.To(corev1.HostPathDirectoryOrCreate),
			}},
		},
	}, metav1.CreateOptions{}))
	made(core.PersistentVolumeClaims(space).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: meta("zoo"),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeName: "zoo", StorageClassName: ptr.To(""), Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{}))
	DeferCleanup(func(ctx SpecContext) {
		for _, err := range []error{
			core.Secrets(space).Delete(ctx, "zoo-secret", metav1.DeleteOptions{}),
			core.Secrets(space).Delete(ctx, "zoo-registry", metav1.DeleteOptions{}),
			core.ConfigMaps(space).Delete(ctx, "zoo-config", metav1.DeleteOptions{}),
			core.ServiceAccounts(space).Delete(ctx, "zoo", metav1.DeleteOptions{}),
			core.PersistentVolumeClaims(space).Delete(ctx, "zoo", metav1.DeleteOptions{}),
			core.PersistentVolumes().Delete(ctx, "zoo", metav1.DeleteOptions{}),
		} {
			Expect(err).NotTo(HaveOccurred())
		}
	})
}
