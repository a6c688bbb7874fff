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

	"rekindle.edge/agent/satoken"
)

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

// verify checks signature, issuer, audience, times and that the pod or the node which the
// token is bound to, if it is, is still here.
func (t *Tokens) verify(token string, now time.Time) (User, error) {
	keys, issuer := t.Keys()
	if keys == nil {
		return User{}, apierrors.NewServiceUnavailable("rekindle-agent: the API server is out of reach, and the keys of its tokens' issuer are not held")
	}
	claims, err := satoken.Read(token, keys)
	if err != nil {
		return User{}, refused(err.Error())
	}
	own := claims.Kubernetes
	switch {
	case claims.Issuer != issuer:
		return User{}, refused(fmt.Sprintf("its issuer is %q, not %q", claims.Issuer, issuer))
	case !slices.Contains(claims.Audience, issuer):
		return User{}, refused("it is for another audience")
	case claims.Expiry == nil || now.After(claims.Expiry.Time()):
		return User{}, refused("it has expired")
	case claims.NotBefore != nil && now.Before(claims.NotBefore.Time().Add(-jwt.DefaultLeeway)):
		return User{}, refused("it is not valid yet")
	case own.Pod == nil && own.Node != nil && own.Node.Name != t.Node():
		return User{}, refused("it is bound to another node")
	case own.Pod != nil && !t.Runs(own.Namespace, own.Pod.Name, own.Pod.UID):
		return User{}, refused("its pod is not on this node")
	}
	namespace := own.Namespace
	return User{
		Name: "system:serviceaccount:" + namespace + ":" + own.ServiceAccount.Name, UID: own.ServiceAccount.UID,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}, nil
}

func refused(why string) error {
	return apierrors.NewUnauthorized("rekindle-agent: the token is not accepted: " + why)
}
