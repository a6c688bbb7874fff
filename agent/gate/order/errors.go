package order

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// retryText makes kubelet try again after 1 to 1.5 s; any other error costs it 10 to 15 s.
// It is a part of the contract with kubelet since 1.9 (NetworkNotReadyErrorMsg).
const retryText = "network is not ready"

// refused answers a call for which no sandbox is made. A kubelet that knows why forgets it;
// one that does not asks again at once.
func refused(why string) error {
	return status.Error(codes.Unavailable, "rekindle-agent made no sandbox: "+why+" (kubelet asks again soon: "+retryText+")")
}

// networkFailed says whether a sandbox was not made because pods cannot be given a network
// yet. Containerd says so in words only.
func networkFailed(err error) bool {
	message := status.Convert(err).Message()
	return strings.Contains(message, "failed to setup network for sandbox") || strings.Contains(message, "cni config not initialized") ||
		strings.Contains(message, "cni plugin not initialized")
}

// nameTaken says whether the runtime has not cleaned up behind an attempt that failed.
// Kubelet then takes another number for the next one.
func nameTaken(err error) bool {
	return strings.Contains(status.Convert(err).Message(), "failed to reserve sandbox name")
}
