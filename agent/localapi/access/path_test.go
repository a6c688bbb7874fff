package access

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// TestAPathIsAskedForAsSuch: as kubelet's own port would ask, so that one answer serves both.
func TestAPathIsAskedForAsSuch(t *testing.T) {
	who := User{Name: "system:serviceaccount:monitoring:collector", Groups: []string{"b", "a"}}
	q := questionOf(who, &request.RequestInfo{Path: "/metrics", Verb: "get"})
	spec := q.spec(who)
	want := authorizationv1.SubjectAccessReviewSpec{
		User: who.Name, Groups: who.Groups, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(q.key(), questionIn(spec).key()); diff != "" {
		t.Errorf("kubelet's question is another: %s", diff)
	}
}
