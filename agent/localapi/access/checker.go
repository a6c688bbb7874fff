package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/localapi/answer"
)

// askTimeout bounds a question to the API server: a read that the node could answer waits
// for it.
const askTimeout = answer.Patience

// reviews are where questions about rights are asked.
const reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

// Checker implements answer.Access.
type Checker struct {
	// Ask posts a review to the API server as the node and decodes the answer into it. An
	// error says that there was no answer.
	Ask func(ctx context.Context, path string, review any) error
	// Linked says whether asking has a point.
	Linked func() bool
	Tokens *Tokens
	Memory *Memory
	Clock  clock.PassiveClock

	once    sync.Once
	limiter *rate.Limiter
}

// asksPerSecond and asksAtOnce bound what callers can make the node ask. More than that is
// answered as while cut off: a token that is good stays good.
const asksPerSecond, asksAtOnce = 20, 100

// mayAsk says whether there is a point in asking the API server about a caller now.
func (c *Checker) mayAsk() bool {
	c.once.Do(func() { c.limiter = rate.NewLimiter(asksPerSecond, asksAtOnce) })
	return c.Linked() && c.limiter.AllowN(c.Clock.Now(), 1)
}

// Check refuses with a *apierrors.StatusError, or allows with nil. The node itself may have
// all that it holds: with its identity it was fetched.
func (c *Checker) Check(ctx context.Context, caller answer.Caller, info *request.RequestInfo) error {
	if caller.Node {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	who, err := c.identify(ctx, caller.Token)
	if err != nil {
		return err
	}
	question := questionOf(who, info)
	if allowed, ok := c.Memory.recent(question); ok {
		return verdict(allowed, info)
	}
	if c.mayAsk() {
		review := &authorizationv1.SubjectAccessReview{Spec: question.spec(who)}
		if err := c.Ask(ctx, reviews, review); err == nil {
			c.Memory.learn(question, review.Status.Allowed)
			return verdict(review.Status.Allowed, info)
		}
	}
	if c.Memory.remembers(question) {
		return nil
	}
	return apierrors.NewServiceUnavailable("rekindle-agent: the API server is out of reach, and it has never said on this node that " +
		who.Name + " may " + info.Verb + " " + resource(info).String())
}

func verdict(allowed bool, info *request.RequestInfo) error {
	if allowed {
		return nil
	}
	return apierrors.NewForbidden(resource(info), info.Name, errors.New("the API server does not allow it"))
}

// question is what was asked, to the letter.
type question struct {
	user, groups, verb, group, version, resource, subresource, namespace, name string
}

func questionOf(who User, info *request.RequestInfo) question {
	if !info.IsResourceRequest {
		return question{user: who.Name, groups: joined(who.Groups), verb: info.Verb, name: info.Path} // as in questionIn
	}
	return question{
		user: who.Name, groups: joined(who.Groups), verb: info.Verb, group: info.APIGroup, version: info.APIVersion,
		resource: info.Resource, subresource: info.Subresource, namespace: info.Namespace, name: info.Name,
	}
}

var (
	// apart keeps the parts of a key apart whatever is in them, and named also groups, whose
	// names have commas where they come from a directory.
	apart = strings.NewReplacer(`\`, `\\`, "\x00", `\0`)
	named = strings.NewReplacer(`\`, `\\`, "\x00", `\0`, ",", `\,`)
)

// joined are groups in their order.
func joined(groups []string) string {
	all := make([]string, len(groups))
	for i, group := range groups {
		all[i] = named.Replace(group)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

func (q question) key() string {
	parts := []string{q.user, q.verb, q.group, q.resource, q.subresource, q.namespace, q.name}
	for i := range parts {
		parts[i] = apart.Replace(parts[i])
	}
	return strings.Join(slices.Insert(parts, 1, q.groups), "\x00")
}

func (q question) spec(who User) authorizationv1.SubjectAccessReviewSpec {
	if q.resource == "" {
		return authorizationv1.SubjectAccessReviewSpec{
			User: who.Name, Groups: who.Groups, UID: who.UID,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: q.name, Verb: q.verb},
		}
	}
	return authorizationv1.SubjectAccessReviewSpec{
		User: who.Name, Groups: who.Groups, UID: who.UID,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: q.verb, Group: q.group, Version: q.version, Resource: q.resource, Subresource: q.subresource,
			Namespace: q.namespace, Name: q.name,
		},
	}
}

// fresh is how long a question is not asked again, as the API server's own webhooks have it.
func fresh(allowed bool) time.Duration {
	if allowed {
		return 5 * time.Minute
	}
	return 30 * time.Second
}
