package answer

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func expired(why string) *apierrors.StatusError {
	return apierrors.NewResourceExpired(why)
}

// ahead is the API server's word for a version it has not reached, without its
// Retry-After: client-go would retry inside the call.
func ahead(asked, have uint64) *apierrors.StatusError {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, have), 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func notAcceptable() *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: application/json",
	}}
}

func notHeld(what string) *apierrors.StatusError {
	return apierrors.NewServiceUnavailable(fmt.Sprintf(
		"rekindle-agent: the API server is out of reach and this node does not hold %s; name it in cacheWarmup.resources of the node's EdgeRecoveryPolicy to have it held", what))
}

func unsupportedMediaType(why error) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "rekindle-agent: " + why.Error(),
	}}
}

func tooLarge() *apierrors.StatusError {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("rekindle-agent: limit is %d bytes", bodyLimit))
}
