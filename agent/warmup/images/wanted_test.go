package images

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

func TestNormal(t *testing.T) {
	digest := "sha256:aaaa"
	for reference, want := range map[string]string{
		"busybox":                                "docker.io/library/busybox:latest",
		"busybox:1.36":                           "docker.io/library/busybox:1.36",
		"grafana/grafana":                        "docker.io/grafana/grafana:latest",
		"index.docker.io/busybox":                "docker.io/library/busybox:latest",
		"localhost/app":                          "localhost/app:latest",
		"registry.example.com/shop/till:v2":      "registry.example.com/shop/till:v2",
		"10.0.0.1:5000/app":                      "10.0.0.1:5000/app:latest",
		"[fd00::1]:5000/app:2":                   "[fd00::1]:5000/app:2",
		"registry.example.com/app:v2@" + digest:  "registry.example.com/app@" + digest,
		"registry.example.com:443/app@" + digest: "registry.example.com:443/app@" + digest,
	} {
		if got := normal(reference); got != want {
			t.Errorf("%s: %s, want %s", reference, got, want)
		}
	}
	for reference, want := range map[string]string{
		"10.0.0.1:5000/app:latest":              "10.0.0.1:5000/app",
		"registry.example.com:443/app@sha256:a": "registry.example.com:443/app",
	} {
		if got := repository(reference); got != want {
			t.Errorf("%s: repository %s, want %s", reference, got, want)
		}
	}
}

func pod(name string, change func(*corev1.Pod), images ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	for _, image := range images {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: image, Image: "r.example/" + image})
	}
	if change != nil {
		change(p)
	}
	return p
}

func TestWanted(t *testing.T) {
	stages := []v1alpha1.Stage{
		{Name: "first", Pods: []v1alpha1.PodSelector{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "database"}}}}},
		{Name: "second", Pods: []v1alpha1.PodSelector{{Namespaces: []string{"shop"}, PriorityClassNames: []string{"gold"}}}},
	}
	gold := func(p *corev1.Pod) { p.Spec.PriorityClassName = "gold" }
	database := func(p *corev1.Pod) { p.Labels = map[string]string{"tier": "database"} }
	important := func(p *corev1.Pod) { p.Spec.Priority = new(int32); *p.Spec.Priority = 7 }
	isStatic := func(p *corev1.Pod) { p.Annotations = map[string]string{"kubernetes.io/config.source": "file"} }
	young := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(2, 0)) }
	cases := map[string]struct {
		spec *v1alpha1.NodeRecoverySpec
		pods []*corev1.Pod
		want []string
	}{
		"without a policy none is": {pods: []*corev1.Pod{pod("a", nil, "a")}},
		"the most important is first": {
			spec: &v1alpha1.NodeRecoverySpec{StartupOrdering: v1alpha1.StartupOrdering{Stages: stages}},
			pods: []*corev1.Pod{
				pod("rest-young", young, "rest-young"), pod("rest", nil, "rest"), pod("important", important, "important"),
				pod("second", gold, "second"), pod("first", database, "first"), pod("static", isStatic, "static"),
			},
			want: []string{"static", "first", "second", "important", "rest", "rest-young"},
		},
		"every kind of container counts, and an image volume": {
			spec: &v1alpha1.NodeRecoverySpec{},
			pods: []*corev1.Pod{pod("a", func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Image: "r.example/init"}}
				p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Image: "r.example/debug"}}}
				p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "r.example/data"}}}}
			}, "a")},
			want: []string{"init", "a", "debug", "data"},
		},
		"what the policy adds comes last, and nothing comes twice": {
			spec: &v1alpha1.NodeRecoverySpec{CacheWarmup: v1alpha1.CacheWarmup{Images: v1alpha1.WarmImages{Extra: []string{"r.example/extra", "r.example/a"}}}},
			pods: []*corev1.Pod{pod("a", nil, "a", "a")},
			want: []string{"a", "extra"},
		},
		"images of pods may be left out": {
			spec: &v1alpha1.NodeRecoverySpec{CacheWarmup: v1alpha1.CacheWarmup{Images: v1alpha1.WarmImages{FromWorkloads: v1alpha1.ToggleDisabled, Extra: []string{"r.example/extra"}}}},
			pods: []*corev1.Pod{pod("a", nil, "a")},
			want: []string{"extra"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range wanted(tc.spec, tc.pods) {
				got = append(got, w.reference[len("r.example/"):len(w.reference)-len(":latest")])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecretsAreForImagesThatKubeletHasPulled(t *testing.T) {
	withSecret := func(ran string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "key"}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", ImageID: ran}}
		}
	}
	cases := map[string]struct {
		pod  *corev1.Pod
		want want
	}{
		"a new pod's image is not pulled with its secret": {
			pod("a", withSecret(""), "a"),
			want{reference: "r.example/a:latest", secrets: []string{"shop/key"}, pods: true},
		},
		"an image that ran is pulled again by its digest": {
			pod("a", withSecret("r.example/a@sha256:aa"), "a"),
			want{reference: "r.example/a:latest", digest: "sha256:aa", secrets: []string{"shop/key"}, secret: true, pods: true},
		},
		"a digest of another repository is not asked for": {
			pod("a", withSecret("r.example/b@sha256:aa"), "a"),
			want{reference: "r.example/a:latest", secrets: []string{"shop/key"}, secret: true, pods: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := wanted(&v1alpha1.NodeRecoverySpec{}, []*corev1.Pod{tc.pod})
			if diff := cmp.Diff([]want{tc.want}, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("wanted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	secret := func(config string) *corev1.Secret {
		return &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)}}
	}
	cases := map[string]struct {
		reference string
		secret    *corev1.Secret
		want      []string // user:password
	}{
		"user and password": {"r.example/a:1", secret(`{"auths":{"r.example":{"username":"u","password":"p"}}}`), []string{"u:p"}},
		"both in one":       {"r.example/a:1", secret(`{"auths":{"https://r.example/v2/":{"auth":"dTpw"}}}`), []string{"u:p"}},
		"the old form": {"r.example/a:1", &corev1.Secret{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{
			corev1.DockerConfigKey: []byte(`{"r.example":{"username":"u","password":"p"}}`)}}, []string{"u:p"}},
		"Docker Hub by its old name": {"docker.io/library/a:1", secret(`{"auths":{"https://index.docker.io/v1/":{"username":"u","password":"p"}}}`), []string{"u:p"}},
		"a pattern":                  {"eu.r.example/a:1", secret(`{"auths":{"*.r.example":{"username":"u","password":"p"}}}`), []string{"u:p"}},
		"a port":                     {"r.example:5000/a:1", secret(`{"auths":{"r.example:5000":{"username":"u","password":"p"}}}`), []string{"u:p"}},
		"another port":               {"r.example:5000/a:1", secret(`{"auths":{"r.example":{"username":"u","password":"p"}}}`), nil},
		"another host":               {"r.example/a:1", secret(`{"auths":{"evil.example":{"username":"u","password":"p"}}}`), nil},
		"a pattern is one name":      {"a.b.example/a:1", secret(`{"auths":{"*.example":{"username":"u","password":"p"}}}`), nil},
		"the closer path first": {"r.example/team/a:1", secret(`{"auths":{"r.example":{"username":"u","password":"1"},"r.example/team":{"username":"u","password":"2"},"r.example/te":{"username":"u","password":"3"}}}`),
			[]string{"u:2", "u:1"}},
		"what cannot be read is none": {"r.example/a:1", secret(`{`), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, auth := range credentials(tc.reference, []*corev1.Secret{tc.secret}) {
				got = append(got, auth.Username+":"+auth.Password)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
		})
	}
}
