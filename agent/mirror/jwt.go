package mirror

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
)

// algorithms that service account issuers sign with.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
}

// boundTo is what a service account's token says of where it belongs.
type boundTo struct {
	Kubernetes struct {
		Namespace      string `json:"namespace"`
		ServiceAccount struct {
			Name string `json:"name"`
		} `json:"serviceaccount"`
		Pod struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

// errSignature: the token is not by a known key of the issuer.
var errSignature = errors.New("its signature is not by a known key of the cluster's issuer")

// genuine checks that a token is what was asked for, and, with keys, that the issuer made
// it. Proxies between node and API server have been seen to make up tokens of their own.
func genuine(token string, wanted wantedToken, keys *jose.JSONWebKeySet) error {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return fmt.Errorf("it is not a token signed by an issuer of service account tokens: %w", err)
	}
	var usual jwt.Claims
	var bound boundTo
	if keys == nil {
		err = parsed.UnsafeClaimsWithoutVerification(&usual, &bound)
	} else {
		err = parsed.Claims(keys, &usual, &bound)
	}
	if err != nil {
		return errSignature
	}
	for _, audience := range wanted.source.audiences() {
		if !usual.Audience.Contains(audience) {
			return fmt.Errorf("it is for audience %v, not %q", usual.Audience, audience)
		}
	}
	k := bound.Kubernetes
	switch {
	case len(usual.Audience) == 0:
		return errors.New("it is for no audience")
	case k.Pod.UID != types.UID(wanted.pod.UID):
		return fmt.Errorf("it is bound to pod UID %q, not %q", k.Pod.UID, wanted.pod.UID)
	case k.Namespace != wanted.pod.Namespace || k.ServiceAccount.Name != wanted.key.ServiceAccount:
		return fmt.Errorf("it is of service account %s/%s, not %s/%s", k.Namespace, k.ServiceAccount.Name, wanted.pod.Namespace, wanted.key.ServiceAccount)
	case usual.Expiry == nil:
		return errors.New("it has no expiry")
	}
	return nil
}

// endOf is when a token ends by its own text. That may be long after what the API server
// told kubelet: it extends the tokens that every pod has.
func endOf(token snapshot.Token) (time.Time, bool) {
	parsed, err := jwt.ParseSigned(token.Token, algorithms)
	if err != nil {
		return time.Time{}, false
	}
	var usual jwt.Claims
	if parsed.UnsafeClaimsWithoutVerification(&usual) != nil || usual.Expiry == nil {
		return time.Time{}, false
	}
	return usual.Expiry.Time(), true
}
