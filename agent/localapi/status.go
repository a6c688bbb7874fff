package localapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// writeStatus answers with an error as the API server words one. It never says
// Retry-After: client-go would try again inside the call, and kubelet's loops over all
// pods would stand still meanwhile.
func writeStatus(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	// The caller has gone if this fails.
	_ = json.NewEncoder(w).Encode(status)
}

func unavailable(reason error) *apierrors.StatusError {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("rekindle-agent: the API server is out of reach (%v)", reason))
}

func unauthorized() *apierrors.StatusError {
	return apierrors.NewUnauthorized("rekindle-agent: show the node's client certificate or a bearer token")
}

func forbidden(info *request.RequestInfo, subject string) *apierrors.StatusError {
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	return apierrors.NewForbidden(resource, info.Name, fmt.Errorf(
		"rekindle-agent: the client certificate of %q is not this node's, and only its holder could pass it on; use a bearer token", subject))
}
