package readiness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/api/v1alpha1"
)

func TestStagesThatWaitOnEachOther(t *testing.T) {
	staged := func(name string, stage int, change func(*Pod)) Pod {
		p := pod(change).Pods[0]
		p.Name, p.Stage, p.StageName = name, stage, "s"
		return p
	}
	user := func(stage int) Pod {
		return staged("user", stage, func(p *Pod) { p.UID, p.Drivers = "a", []string{"d.example"} })
	}
	driver := func(stage int) Pod {
		return staged("driver", stage, func(p *Pod) {
			p.UID, p.Spec.Volumes = "b", []corev1.Volume{hostPath("/var/lib/kubelet/plugins/d.example", nil)}
		})
	}
	network := func(stage int, readOnly bool) Pod {
		return staged("cni", stage, func(p *Pod) {
			p.UID, p.Spec.HostNetwork, p.Spec.Volumes = "c", true, []corev1.Volume{hostPath("/etc/cni/net.d", nil)}
			p.Spec.Containers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "h", ReadOnly: readOnly}}}}
		})
	}
	caller := func(stage int) Pod {
		return staged("caller", stage, func(p *Pod) {
			p.UID, p.Calls = "caller", []Call{{Service: "shop/db", Pods: []types.UID{"a", "b"}}}
		})
	}
	server := func(uid types.UID, stage int) Pod {
		return staged("db-"+string(uid), stage, func(p *Pod) { p.UID = uid })
	}
	late := []string{"Slows StageOrder shop/user pod/shop/driver"}
	cases := map[string]struct {
		pods []Pod
		want []string
	}{
		"a driver that comes after its user":      {pods: []Pod{user(1), driver(2)}, want: late},
		"a driver in the same stage":              {pods: []Pod{user(1), driver(1)}},
		"a driver that comes before":              {pods: []Pod{user(2), driver(1)}},
		"a network that comes after":              {pods: []Pod{user(1), network(2, false)}, want: []string{"Slows StageOrder shop/user pod/shop/cni"}},
		"a pod that only looks at the network":    {pods: []Pod{user(1), network(2, true)}},
		"a service that comes after":              {pods: []Pod{caller(1), server("a", 2)}, want: []string{"Slows StageOrder shop/caller services/shop/db"}},
		"a service that comes before":             {pods: []Pod{caller(2), server("a", 1)}},
		"a service in the same stage":             {pods: []Pod{caller(1), server("a", 1)}},
		"a service with one pod that comes after": {pods: []Pod{caller(1), server("a", 2), server("b", 1)}},
		"a service whose pods have ended":         {pods: []Pod{caller(1)}},
		"another driver that comes after": {pods: []Pod{user(1), staged("other", 2, func(p *Pod) {
			p.UID, p.Spec.Volumes = "d", []corev1.Volume{hostPath("/var/lib/kubelet/plugins/d.example.com", nil)}
		})}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, line := range told(Check(Facts{Pods: tc.pods})) {
				if line[:len("Slows DriverLate")] != "Slows DriverLate" {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStagesThatSelectNothing(t *testing.T) {
	policy := &v1alpha1.NodeRecoverySpec{StartupOrdering: v1alpha1.StartupOrdering{Stages: []v1alpha1.Stage{{Name: "db"}, {Name: "web"}}}}
	in := func(stage string) Pod {
		p := pod(func(p *Pod) { p.StageName = stage }).Pods[0]
		return p
	}
	cases := map[string]struct {
		facts Facts
		want  []string
	}{
		"each has a pod":                {facts: Facts{Policy: policy, Pods: []Pod{in("db"), in("web"), in("Rest")}}},
		"one has none":                  {facts: Facts{Policy: policy, Pods: []Pod{in("db"), in("Rest")}}, want: []string{"Slows StageEmpty stages/web"}},
		"a node without pods":           {facts: Facts{Policy: policy}},
		"stages that could not be read": {facts: Facts{Policy: policy, Pods: []Pod{in("")}}},
		"no stages":                     {facts: Facts{Policy: &v1alpha1.NodeRecoverySpec{}, Pods: []Pod{in("")}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, told(Check(tc.facts))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
