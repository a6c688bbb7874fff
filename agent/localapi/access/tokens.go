package access

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// algorithms that service account issuers sign with.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
}

// Tokens checks tokens without the API server.
type Tokens struct {
	// Keys are the issuer's, and its name; nil while none are known.
	Keys func() (*jose.JSONWebKeySet, string)
	// Node is this node's name.
	Node func() string
	// Runs says whether a pod is still on this node.
	Runs func(namespace, name string, uid types.UID) bool

	mu      sync.Mutex
	recents map[[32]byte]identified
}

func (t *Tokens) recent(key [32]byte) (identified, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.recents[key]
	return known, ok
}

func (t *Tokens) learn(key [32]byte, user identified) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.recents == nil || len(t.recents) >= tokensKept {
		t.recents = map[[32]byte]identified{}
	}
	t.recents[key] = user
}

// claims of a service account's token, beside the usual ones.
type claims struct {
	Kubernetes struct {
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
	} `json:"kubernetes.io"`
}

// verify checks signature, issuer, audience, times and that the pod or the node which the
// token is bound to, if it is, is still here.
func (t *Tokens) verify(token string, now time.Time) (User, error) {
	keys, issuer := t.Keys()
	if keys == nil {
		return User{}, apierrors.NewServiceUnavailable("rekindle-agent: the API server is out of reach, and the keys of its tokens' issuer are not held")
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return User{}, refused("it is not a signed token")
	}
	var usual jwt.Claims
	var own claims
	if err := parsed.Claims(keys, &usual, &own); err != nil {
		return User{}, refused("its signature is not by a known key of the issuer")
	}
	account := own.Kubernetes.ServiceAccount
	switch {
	case usual.Issuer != issuer:
		return User{}, refused(fmt.Sprintf("its issuer is %q, not %q", usual.Issuer, issuer))
	case !slices.Contains(usual.Audience, issuer):
		return User{}, refused("it is for another audience")
	case usual.Expiry == nil || now.After(usual.Expiry.Time()):
		return User{}, refused("it has expired")
	case usual.NotBefore != nil && now.Before(usual.NotBefore.Time().Add(-jwt.DefaultLeeway)):
		return User{}, refused("it is not valid yet")
	case own.Kubernetes.Pod == nil && own.Kubernetes.Node != nil && own.Kubernetes.Node.Name != t.Node():
		return User{}, refused("it is bound to another node")
	case own.Kubernetes.Pod != nil && !t.Runs(own.Kubernetes.Namespace, own.Kubernetes.Pod.Name, own.Kubernetes.Pod.UID):
		return User{}, refused("its pod is not on this node")
	}
	namespace := own.Kubernetes.Namespace
	return User{
		Name: "system:serviceaccount:" + namespace + ":" + account.Name, UID: account.UID,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}, nil
}

func refused(why string) error {
	return apierrors.NewUnauthorized("rekindle-agent: the token is not accepted: " + why)
}
