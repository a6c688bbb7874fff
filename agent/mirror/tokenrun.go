package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/satoken"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// issuerEvery is how often the issuer's keys are read again; a key that is not known is a
// reason to do so at once.
const issuerEvery = time.Hour

// leastTokenAge is the least time between two tokens of one kind.
const leastTokenAge = time.Minute

// tokenKeeper asks for tokens.
type tokenKeeper struct {
	*session
	issuerRead time.Time
	issuerFail string

	mu       sync.Mutex
	tried    map[snapshot.TokenKey]time.Time
	failures map[snapshot.TokenKey]int
}

// runTokens keeps the tokens that the pods want.
func (s *session) runTokens(ctx context.Context) {
	k := &tokenKeeper{session: s, tried: map[snapshot.TokenKey]time.Time{}, failures: map[snapshot.TokenKey]int{}}
	rounds(ctx, s.tokensMoved, func() time.Duration { return k.round(ctx) })
}

// round brings tokens in step with the closure and returns when to do so again.
func (k *tokenKeeper) round(ctx context.Context) time.Duration {
	// Which pods are on the node must be known before a token is given up.
	if !k.listed(snapshot.Scope{Resource: pods}) {
		return time.Second
	}
	if time.Since(k.issuerRead) > issuerEvery {
		k.refreshIssuer(ctx)
	}
	k.session.mu.Lock()
	wanted := maps.Clone(k.closure.tokens)
	k.session.mu.Unlock()
	now := k.m.wall()
	omit := k.m.currentSpec().Snapshot.ServiceAccountTokens == v1alpha1.TokensOmit
	k.mu.Lock()
	maps.DeleteFunc(k.tried, func(key snapshot.TokenKey, _ time.Time) bool { return len(wanted[string(key.PodUID)].Sources) == 0 })
	maps.DeleteFunc(k.failures, func(key snapshot.TokenKey, _ int) bool { return len(wanted[string(key.PodUID)].Sources) == 0 })
	plan := planTokens(wanted, k.m.objects.Tokens(), omit, k.tried, now)
	k.mu.Unlock()
	for _, key := range plan.drop {
		if err := k.m.objects.DeleteToken(key); err != nil {
			k.log.Error(err, "Token cannot be removed yet", "podUID", key.PodUID)
		}
		k.mu.Lock()
		delete(k.tried, key)
		k.mu.Unlock()
	}
	k.m.setOmitted(wanted, omit)
	if len(plan.fetch) > 0 {
		// A link that is down costs no attempts.
		if k.verify.wait(ctx) != nil {
			return time.Minute
		}
		k.fetch(ctx, plan.fetch)
	}
	k.m.countExpired(k.m.wall())
	k.m.tick()
	k.mu.Lock()
	defer k.mu.Unlock()
	plan = planTokens(wanted, k.m.objects.Tokens(), omit, k.tried, k.m.wall())
	if len(plan.fetch) > 0 {
		return time.Second
	}
	// The minute bounds what a step of the clock costs.
	return max(time.Second, min(plan.next, time.Minute))
}

// fetch asks for tokens.
func (k *tokenKeeper) fetch(ctx context.Context, wanted []wantedToken) {
	slots := make(chan struct{}, parallelGets)
	var running sync.WaitGroup
	for _, w := range wanted {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			err := k.one(ctx, w)
			k.mu.Lock()
			defer k.mu.Unlock()
			if err == nil {
				// A clock that is far ahead makes every token look old.
				k.tried[w.key] = k.m.wall().Add(leastTokenAge)
				delete(k.failures, w.key)
				return
			}
			pause := min(longestTokenRetry, firstTokenRetry<<min(k.failures[w.key], 10))
			if !lineLost(err) {
				k.failures[w.key]++
			}
			k.tried[w.key] = k.m.wall().Add(pause/2 + rand.N(pause/2))
			if k.failures[w.key] == 3 && ctx.Err() == nil {
				k.log.Error(err, "Token of a pod cannot be had, trying again", "pod", w.pod.Namespace+"/"+w.pod.Name, "audience", w.source.Audience)
			}
		})
	}
	running.Wait()
}

// lineLost says whether the line was lost, and not the token refused.
func lineLost(err error) bool {
	var line *url.Error
	var lost unconfirmed
	return errors.As(err, &line) || errors.As(err, &lost) || errors.Is(err, context.DeadlineExceeded)
}

// one asks for one token, checks it and keeps it.
func (k *tokenKeeper) one(ctx context.Context, w wantedToken) error {
	question, err := k.verify.begin(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(w.request())
	if err != nil {
		return err
	}
	var answer authenticationv1.TokenRequest
	path := pathOf(accounts, w.pod.Namespace) + "/" + w.key.ServiceAccount + "/token"
	err = k.client.read(ctx, http.MethodPost, path, nil, bytes.NewReader(body), func(body io.Reader) error {
		return json.NewDecoder(body).Decode(&answer)
	})
	if err != nil {
		return fmt.Errorf("TokenRequest: %w", err)
	}
	keys, _ := IssuerKeys(k.m.objects)
	err = genuine(answer.Status.Token, w, keys)
	if errors.Is(err, satoken.ErrSignature) {
		// The issuer may have begun to use another key.
		k.refreshIssuer(ctx)
		keys, _ = IssuerKeys(k.m.objects)
		err = genuine(answer.Status.Token, w, keys)
	}
	if err != nil {
		return fmt.Errorf("the API server, or what is in front of it, answers with a token that is not kept: %w", err)
	}
	if err := k.verify.confirm(ctx, question); err != nil {
		return err
	}
	if !k.m.runs(types.UID(w.pod.UID)) {
		return nil
	}
	seconds := w.key.ExpirationSeconds
	if answer.Spec.ExpirationSeconds != nil {
		seconds = *answer.Spec.ExpirationSeconds
	}
	// By the server's clock: the node's may be wrong by years.
	expires := answer.Status.ExpirationTimestamp.Time
	return k.m.objects.PutToken(w.key, snapshot.Token{Token: answer.Status.Token, Issued: expires.Add(-time.Duration(seconds) * time.Second), Expires: expires})
}

func (k *tokenKeeper) refreshIssuer(ctx context.Context) {
	err := k.readIssuer(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.issuerRead, k.issuerFail = time.Now(), ""
		k.m.setIssuerRefused("")
		return
	}
	// Again in a minute.
	k.issuerRead = time.Now().Add(time.Minute - issuerEvery)
	if answered(err) {
		k.m.setIssuerRefused(err.Error())
	}
	if err.Error() != k.issuerFail && ctx.Err() == nil {
		k.issuerFail = err.Error()
		k.log.Error(err, "Keys of the service account tokens' issuer cannot be read, trying again every minute")
	}
}
