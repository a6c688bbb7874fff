package order

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

func TestPlaces(t *testing.T) {
	stage := func(name string) v1alpha1.Stage {
		return v1alpha1.Stage{Name: name, Pods: []v1alpha1.PodSelector{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}}}}
	}
	place, err := Places(v1alpha1.StartupOrdering{Stages: []v1alpha1.Stage{stage("db"), stage("web")}})
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]int{
		`{"metadata":{"name":"a","labels":{"app":"db"}}}`:                                1,
		`{"metadata":{"name":"a","labels":{"app":"web"}}}`:                               2,
		`{"metadata":{"name":"a"}}`:                                                      3,
		`{"metadata":{"name":"a"},"spec":{"priority":2000001000}}`:                       0,
		`{"metadata":{"name":"a","labels":{"app":"db"}},"spec":{"priority":2000001000}}`: 1,
		`no pod`: 3,
	} {
		if got, name := place([]byte(raw)); got != want || name == "" {
			t.Errorf("%s: place %d (%s), want %d", raw, got, name, want)
		}
	}
	all, err := Places(v1alpha1.StartupOrdering{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := all([]byte(`{"metadata":{"name":"a"}}`)); got != 0 {
		t.Errorf("place %d without stages", got)
	}
}
