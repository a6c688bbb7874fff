package order

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

func TestAStageSelects(t *testing.T) {
	all := []*pod{
		{name: name{"shop", "db"}, labels: map[string]string{"app": "db"}},
		{name: name{"shop", "web"}, labels: map[string]string{"app": "web"}, priorityClass: "high"},
		{name: name{"lab", "db"}, labels: map[string]string{"app": "db"}, priorityClass: "high"},
		{name: name{"kube-system", "proxy"}, static: true},
	}
	db := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	cases := map[string]struct {
		pods []v1alpha1.PodSelector
		want []string
	}{
		"by namespace":                         {pods: []v1alpha1.PodSelector{{Namespaces: []string{"shop", "office"}}}, want: []string{"shop/db", "shop/web"}},
		"by label":                             {pods: []v1alpha1.PodSelector{{LabelSelector: db}}, want: []string{"shop/db", "lab/db"}},
		"by priority class":                    {pods: []v1alpha1.PodSelector{{PriorityClassNames: []string{"high"}}}, want: []string{"shop/web", "lab/db"}},
		"static pods":                          {pods: []v1alpha1.PodSelector{{Source: v1alpha1.PodSourceStatic}}, want: []string{"kube-system/proxy"}},
		"any pod":                              {pods: []v1alpha1.PodSelector{{Source: v1alpha1.PodSourceAny}}, want: []string{"shop/db", "shop/web", "lab/db", "kube-system/proxy"}},
		"all fields of a selector must be met": {pods: []v1alpha1.PodSelector{{Namespaces: []string{"lab"}, LabelSelector: db, PriorityClassNames: []string{"high"}}}, want: []string{"lab/db"}},
		"one of several selectors is enough":   {pods: []v1alpha1.PodSelector{{Namespaces: []string{"lab"}}, {Source: v1alpha1.PodSourceStatic}}, want: []string{"lab/db", "kube-system/proxy"}},
		"fields that no pod meets together select nobody": {pods: []v1alpha1.PodSelector{{Namespaces: []string{"shop"}, Source: v1alpha1.PodSourceStatic}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := groupOf(&v1alpha1.Stage{Name: "one", Pods: tc.pods}, 2)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range all {
				if g.selects(p) {
					got = append(got, p.String())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
