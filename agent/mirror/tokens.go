package mirror

import (
	"cmp"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/satoken"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// A token is asked for as kubelet would: the same audience and seconds, bound to the pod. So
// pods that are older than the agent are covered, and kubelet can be given after a restart
// what it would have got. Tokens are replaced between 70 and 80 % of their life.

const (
	// replayLife is the longest life that a replayed token is answered with.
	replayLife = 10 * time.Minute
	// replayPart is the part of the requested life that is answered at most. Kubelet asks for
	// another token when a fifth is left: so it does whenever it looks at the pod, which costs
	// nothing on the node, and has a real one soon after a reconnect.
	replayPart = 5
	// refreshFrom and refreshSpread are parts of a token's life.
	refreshFrom, refreshSpread = 0.7, 0.1
	// firstTokenRetry doubles up to longestTokenRetry.
	firstTokenRetry, longestTokenRetry = 2 * time.Second, 5 * time.Minute
	// expiredShown is for how long the replay of an expired token stays a finding.
	expiredShown = time.Hour
)

// ErrNoToken says that none is kept for exactly that request, or that its pod is gone.
var ErrNoToken = errors.New("no token is kept for this pod, audience and expiration")

// ErrTokensOmitted says that the policy keeps none.
var ErrTokensOmitted = errors.New("the policy has serviceAccountTokens: Omit, so no tokens are kept on the node")

// wantedToken is a token that a pod wants.
type wantedToken struct {
	key    snapshot.TokenKey
	pod    podName
	source tokenSource
}

func (t podTokens) equal(other podTokens) bool {
	return t.Pod == other.Pod && t.Account == other.Account && slices.Equal(t.Sources, other.Sources)
}

// tokenKey is what a request for a token is kept under.
func tokenKey(podUID types.UID, namespace, account string, audiences []string, seconds int64) snapshot.TokenKey {
	return snapshot.TokenKey{
		PodUID: podUID, Namespace: namespace, ServiceAccount: account,
		Audiences: strings.Join(slices.Sorted(slices.Values(audiences)), ","), ExpirationSeconds: seconds,
	}
}

func (s tokenSource) audiences() []string {
	if s.Audience == "" {
		return nil
	}
	return []string{s.Audience}
}

// tokenPlan is what is to be done about tokens.
type tokenPlan struct {
	// fetch now, those of which there is none first.
	fetch []wantedToken
	drop  []snapshot.TokenKey
	// next is the time until one is due.
	next time.Duration
}

// planTokens compares what pods want with what is stored. Tried is when a token that could
// not be had is to be asked for again.
func planTokens(wanted map[string]podTokens, stored map[snapshot.TokenKey]snapshot.Token, omit bool, tried map[snapshot.TokenKey]time.Time, now time.Time) tokenPlan {
	plan := tokenPlan{next: time.Hour}
	keep := map[snapshot.TokenKey]bool{}
	if !omit {
		for _, pod := range wanted {
			for _, source := range pod.Sources {
				key := tokenKey(types.UID(pod.Pod.UID), pod.Pod.Namespace, pod.Account, source.audiences(), source.ExpirationSeconds)
				keep[key] = true
				due := tried[key]
				if token, ok := stored[key]; ok {
					due = latest(due, refreshAt(key, token))
				}
				if wait := due.Sub(now); wait > 0 {
					plan.next = min(plan.next, wait)
					continue
				}
				plan.fetch = append(plan.fetch, wantedToken{key, pod.Pod, source})
			}
		}
	}
	for key := range stored {
		if !keep[key] {
			plan.drop = append(plan.drop, key)
		}
	}
	slices.SortFunc(plan.fetch, func(a, b wantedToken) int {
		_, hasA := stored[a.key]
		_, hasB := stored[b.key]
		if hasA != hasB {
			if hasA {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name), cmp.Compare(a.key.Audiences, b.key.Audiences))
	})
	return plan
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// refreshAt is when a token is to be replaced. The tokens of a node that was cut off all
// begin together; where in the last third they are due is drawn from what they are.
func refreshAt(key snapshot.TokenKey, token snapshot.Token) time.Time {
	hash := fnv.New32a()
	hash.Write([]byte(string(key.PodUID) + key.Audiences + token.Issued.String()))
	part := refreshFrom + refreshSpread*float64(hash.Sum32()%1000)/1000
	return token.Issued.Add(time.Duration(part * float64(token.Expires.Sub(token.Issued))))
}

// tokenBook counts what is told of tokens. It is guarded by the mirror's lock.
type tokenBook struct {
	// expired is how many stored tokens were past their end when last looked at.
	expired int
	// replayedExpired counts expired tokens that were replayed since lastExpired.
	replayedExpired int
	lastExpired     time.Time
	// omitted are pods that want tokens and get none.
	omitted []string
}

// Replay answers a TokenRequest while the API server is out of reach: with the very token
// that was kept for this pod, audiences and seconds, also an expired one, so that volumes
// mount, and with an expiry so near that kubelet asks again when it next looks at the pod. The spec of the answer is the request's.
// The error is ErrTokensOmitted or ErrNoToken.
func (m *Mirror) Replay(podUID types.UID, namespace, account string, audiences []string, expirationSeconds int64, now time.Time) (authenticationv1.TokenRequestStatus, error) {
	if m.currentSpec().Snapshot.ServiceAccountTokens == v1alpha1.TokensOmit {
		return authenticationv1.TokenRequestStatus{}, ErrTokensOmitted
	}
	token, ok := m.objects.Token(tokenKey(podUID, namespace, account, audiences, expirationSeconds))
	if !ok || !m.runs(podUID) {
		return authenticationv1.TokenRequestStatus{}, ErrNoToken
	}
	if end, ok := satoken.End(token.Token); ok && now.After(end) {
		m.mu.Lock()
		m.tokens.replayedExpired++
		m.tokens.lastExpired = now
		m.mu.Unlock()
		m.tick()
	}
	life := min(replayLife, time.Duration(expirationSeconds)*time.Second/replayPart)
	return authenticationv1.TokenRequestStatus{Token: token.Token, ExpirationTimestamp: metav1.NewTime(now.Add(life))}, nil
}

// runs says whether a pod is on the node.
func (m *Mirror) runs(uid types.UID) bool {
	all, _ := m.objects.List(pods)
	return slices.ContainsFunc(all, func(pod snapshot.Object) bool { return pod.UID == uid })
}

// countExpired looks at the stored tokens.
func (m *Mirror) countExpired(now time.Time) {
	count := 0
	for _, token := range m.objects.Tokens() {
		if end, ok := satoken.End(token.Token); ok && now.After(end) {
			count++
		}
	}
	m.mu.Lock()
	m.tokens.expired = count
	m.mu.Unlock()
}

// setOmitted notes which pods go without tokens.
func (m *Mirror) setOmitted(wanted map[string]podTokens, omit bool) {
	var names []string
	if omit {
		for pod := range maps.Values(wanted) {
			names = append(names, pod.Pod.Namespace+"/"+pod.Pod.Name)
		}
		slices.Sort(names)
	}
	m.mu.Lock()
	m.tokens.omitted = names
	m.mu.Unlock()
}

// request is what is sent for a token.
func (w wantedToken) request() *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
		Spec: authenticationv1.TokenRequestSpec{
			Audiences: w.source.audiences(), ExpirationSeconds: &w.source.ExpirationSeconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Name: w.pod.Name, UID: types.UID(w.pod.UID),
			},
		},
	}
}
