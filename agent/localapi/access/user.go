package access

import (
	"context"
	"crypto/sha256"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/answer"
)

const (
	tokenReviews = "/apis/authentication.k8s.io/v1/tokenreviews"
	// tokenFresh is how long a token is not asked about again.
	tokenFresh = 10 * time.Second
	// tokensKept bounds the tokens known for the moment.
	tokensKept = 1024
)

// User is who a token belongs to.
type User struct {
	Name, UID string
	Groups    []string
}

func resource(info *request.RequestInfo) schema.GroupResource {
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
}

// identified is a token's user for the moment, or why it is nobody's.
type identified struct {
	user  User
	err   error
	until time.Time
}

// Identify refuses a caller that is nobody with a *apierrors.StatusError.
func (c *Checker) Identify(ctx context.Context, caller answer.Caller) error {
	if caller.Node {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err := c.identify(ctx, caller.Token)
	return err
}

// identify finds out who a token belongs to: the API server says, or its keys.
func (c *Checker) identify(ctx context.Context, token string) (User, error) {
	key, now := sha256.Sum256([]byte(token)), c.Clock.Now()
	if known, ok := c.Tokens.recent(key); ok && now.Before(known.until) {
		return known.user, known.err
	}
	user, err := c.review(ctx, token)
	if err == nil || apierrors.IsUnauthorized(err) {
		c.Tokens.learn(key, identified{user, err, now.Add(tokenFresh)})
	}
	return user, err
}

func (c *Checker) review(ctx context.Context, token string) (User, error) {
	if c.mayAsk() {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		if err := c.Ask(ctx, tokenReviews, review); err == nil {
			if !review.Status.Authenticated {
				return User{}, apierrors.NewUnauthorized("rekindle-agent: the API server does not accept the token: " + review.Status.Error)
			}
			user := review.Status.User
			return User{Name: user.Username, UID: user.UID, Groups: user.Groups}, nil
		}
	}
	return c.Tokens.verify(token, c.Clock.Now())
}
