// Package satoken reads the tokens of service accounts.
package satoken

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"
)

// algorithms that service account issuers sign with.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
}

// ErrSignature says that a token is not by a known key of the issuer.
var ErrSignature = errors.New("its signature is not by a known key of the cluster's issuer")

// Claims of a token.
type Claims struct {
	jwt.Claims
	Kubernetes Bound `json:"kubernetes.io"`
}

// Bound says whose the token is, and what it ends with. Pod and Node are nil
// where it is not bound to one.
type Bound struct {
	Namespace      string `json:"namespace"`
	ServiceAccount struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"serviceaccount"`
	Pod *struct {
		Name string    `json:"name"`
		UID  types.UID `json:"uid"`
	} `json:"pod"`
	Node *struct {
		Name string `json:"name"`
	} `json:"node"`
}

// Read gives the claims of a token. The signature is checked with keys, and not looked at if
// they are nil. Whether the claims are true of anything is for the caller to say.
func Read(token string, keys *jose.JSONWebKeySet) (Claims, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return Claims{}, fmt.Errorf("it is not a token signed by an issuer of service account tokens: %w", err)
	}
	var claims Claims
	if keys == nil {
		err = parsed.UnsafeClaimsWithoutVerification(&claims)
	} else {
		err = parsed.Claims(keys, &claims)
	}
	if err != nil {
		return Claims{}, ErrSignature
	}
	return claims, nil
}

// End is when a token ends by its own text; false: it does not say.
func End(token string) (time.Time, bool) {
	claims, err := Read(token, nil)
	if err != nil || claims.Expiry == nil {
		return time.Time{}, false
	}
	return claims.Expiry.Time(), true
}
