package access

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
)

// ReviewToken answers a review of a token of a caller of kubelet's own port.
func (c *Checker) ReviewToken(ctx context.Context, review *authenticationv1.TokenReview) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if c.Linked() {
		if err := c.Ask(ctx, tokenReviews, review); err == nil {
			return nil
		}
	}
	who, err := c.Tokens.verify(review.Spec.Token, c.Clock.Now())
	if err != nil && !apierrors.IsUnauthorized(err) {
		return err
	}
	if err != nil {
		review.Status = authenticationv1.TokenReviewStatus{Error: err.Error()}
		return nil
	}
	review.Status = authenticationv1.TokenReviewStatus{
		Authenticated: true,
		User:          authenticationv1.UserInfo{Username: who.Name, UID: who.UID, Groups: who.Groups},
		Audiences:     review.Spec.Audiences,
	}
	return nil
}

// ReviewAccess answers whether a caller of kubelet's own port may do something.
func (c *Checker) ReviewAccess(ctx context.Context, review *authorizationv1.SubjectAccessReview) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	q := questionIn(review.Spec)
	if c.Linked() {
		if err := c.Ask(ctx, reviews, review); err == nil {
			if !narrowed(review.Spec) {
				c.Memory.learn(q, review.Status.Allowed)
			}
			return nil
		}
	}
	switch {
	case slices.Contains(review.Spec.Groups, user.SystemPrivilegedGroup):
		// The API server asks nobody about these.
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	case c.Memory.remembers(q):
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "the API server allowed it when it was last asked"}
	default:
		review.Status = authorizationv1.SubjectAccessReviewStatus{Reason: "the API server is out of reach and has never allowed this on this node"}
	}
	return nil
}

// narrowed says whether a question is about part of a collection only. Its answer is none to
// the question about all of it, and is not remembered.
func narrowed(spec authorizationv1.SubjectAccessReviewSpec) bool {
	a := spec.ResourceAttributes
	return a != nil && (a.FieldSelector != nil || a.LabelSelector != nil)
}

func questionIn(spec authorizationv1.SubjectAccessReviewSpec) question {
	q := question{user: spec.User, groups: joined(spec.Groups)}
	if a := spec.ResourceAttributes; a != nil {
		q.verb, q.group, q.version, q.resource, q.subresource = a.Verb, a.Group, a.Version, a.Resource, a.Subresource
		q.namespace, q.name = a.Namespace, a.Name
	}
	if a := spec.NonResourceAttributes; a != nil {
		// A path is no name of a resource: it begins with a slash.
		q.verb, q.name = a.Verb, a.Path
	}
	return q
}
