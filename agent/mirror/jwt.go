package mirror

import (
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/satoken"
)

// genuine checks that a token is what was asked for, and, with keys, that the issuer made
// it. Proxies between node and API server have been seen to make up tokens of their own.
func genuine(token string, wanted wantedToken, keys *jose.JSONWebKeySet) error {
	claims, err := satoken.Read(token, keys)
	if err != nil {
		return err
	}
	for _, audience := range wanted.source.audiences() {
		if !claims.Audience.Contains(audience) {
			return fmt.Errorf("it is for audience %v, not %q", claims.Audience, audience)
		}
	}
	k := claims.Kubernetes
	var pod types.UID
	if k.Pod != nil {
		pod = k.Pod.UID
	}
	switch {
	case len(claims.Audience) == 0:
		return errors.New("it is for no audience")
	case pod != types.UID(wanted.pod.UID):
		return fmt.Errorf("it is bound to pod UID %q, not %q", pod, wanted.pod.UID)
	case k.Namespace != wanted.pod.Namespace || k.ServiceAccount.Name != wanted.key.ServiceAccount:
		return fmt.Errorf("it is of service account %s/%s, not %s/%s", k.Namespace, k.ServiceAccount.Name, wanted.pod.Namespace, wanted.key.ServiceAccount)
	case claims.Expiry == nil:
		return errors.New("it has no expiry")
	}
	return nil
}
