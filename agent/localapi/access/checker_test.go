package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	"rekindle.edge/agent/localapi/answer"
	"rekindle.edge/agent/satoken"
)

const issuer = "https://kubernetes.default.svc"

// disk is a Store.
type disk map[string][]byte

func (d disk) Remember(_, key string, value []byte) {
	if value == nil {
		delete(d, key)
		return
	}
	d[key] = value
}

func (d disk) Remembered(string) map[string][]byte { return maps.Clone(d) }

// cluster is an API server that knows one account and what it may.
type cluster struct {
	linked bool
	allows bool
	asked  int
	key    *ecdsa.PrivateKey
}

func (c *cluster) ask(_ context.Context, _ string, review any) error {
	c.asked++
	if !c.linked {
		return errors.New("no answer")
	}
	switch r := review.(type) {
	case *authenticationv1.TokenReview:
		r.Status.Authenticated = true
		r.Status.User = authenticationv1.UserInfo{
			Username: "system:serviceaccount:shop:till",
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"},
		}
	case *authorizationv1.SubjectAccessReview:
		r.Status.Allowed = c.allows
	}
	return nil
}

// token of a pod on this node, unless it is changed.
func (c *cluster) token(t *testing.T, change func(*satoken.Claims)) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: c.key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	claims := satoken.Claims{Claims: jwt.Claims{
		Issuer: issuer, Audience: jwt.Audience{issuer},
		Expiry: jwt.NewNumericDate(now.Add(time.Hour)), NotBefore: jwt.NewNumericDate(now.Add(-time.Hour)),
	}}
	claims.Kubernetes.Namespace = "shop"
	claims.Kubernetes.ServiceAccount.Name = "till"
	claims.Kubernetes.Pod = &struct {
		Name string    `json:"name"`
		UID  types.UID `json:"uid"`
	}{"till-1", "uid-1"}
	if change != nil {
		change(&claims)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// checker as it is after a start of the agent with what is on the disk.
func (c *cluster) checker(store disk) (*Checker, *clocktesting.FakePassiveClock) {
	clock := clocktesting.NewFakePassiveClock(now)
	keys := &jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &c.key.PublicKey, KeyID: "1", Algorithm: "ES256"}}}
	return &Checker{
		Ask: c.ask, Linked: func() bool { return c.linked }, Memory: NewMemory(store, clock), Clock: clock,
		Tokens: &Tokens{
			Node: func() string { return "edge-1" },
			Keys: func() (*jose.JSONWebKeySet, string) { return keys, issuer },
			Runs: func(namespace, name string, uid types.UID) bool {
				return namespace == "shop" && name == "till-1" && uid == "uid-1"
			},
		},
	}, clock
}

func list(namespace string) *request.RequestInfo {
	return &request.RequestInfo{IsResourceRequest: true, Verb: "list", APIVersion: "v1", Resource: "services", Namespace: namespace}
}

// code of a refusal; 0: allowed.
func code(err error) int {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return 0
	}
	return int(status.Status().Code)
}

func TestWhatWasAllowedIsRememberedToTheLetter(t *testing.T) {
	c := &cluster{linked: true, allows: true, key: newKey(t)}
	store := disk{}
	caller := answer.Caller{Token: c.token(t, nil)}
	online, _ := c.checker(store)
	if err := online.Check(t.Context(), caller, list("shop")); err != nil {
		t.Fatal(err)
	}
	c.linked = false
	offline, _ := c.checker(store)
	same := list("shop")
	cases := map[string]struct {
		info *request.RequestInfo
		want int
	}{
		"the same question":                  {info: same},
		"another namespace":                  {info: list("other"), want: 503},
		"all namespaces":                     {info: list(""), want: 503},
		"another verb":                       {info: &request.RequestInfo{Verb: "watch", APIVersion: "v1", Resource: "services", Namespace: "shop"}, want: 503},
		"another resource":                   {info: &request.RequestInfo{Verb: "list", APIVersion: "v1", Resource: "secrets", Namespace: "shop"}, want: 503},
		"one name":                           {info: &request.RequestInfo{Verb: "list", APIVersion: "v1", Resource: "services", Namespace: "shop", Name: "x"}, want: 503},
		"a subresource":                      {info: &request.RequestInfo{Verb: "list", APIVersion: "v1", Resource: "services", Subresource: "status", Namespace: "shop"}, want: 503},
		"the same resource of another group": {info: &request.RequestInfo{Verb: "list", APIGroup: "x", APIVersion: "v1", Resource: "services", Namespace: "shop"}, want: 503},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := code(offline.Check(t.Context(), caller, tc.info)); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
	t.Run("the node has all it holds", func(t *testing.T) {
		if err := offline.Check(t.Context(), answer.Caller{Node: true}, list("other")); err != nil {
			t.Error(err)
		}
	})
	t.Run("what is taken back is forgotten", func(t *testing.T) {
		c.linked, c.allows = true, false
		again, _ := c.checker(store)
		if got := code(again.Check(t.Context(), caller, list("shop"))); got != 403 {
			t.Errorf("%d while linked", got)
		}
		c.linked = false
		after, _ := c.checker(store)
		if got := code(after.Check(t.Context(), caller, list("shop"))); got != 503 {
			t.Errorf("%d while cut off", got)
		}
	})
}

func TestAnswersAreFreshForAWhile(t *testing.T) {
	c := &cluster{linked: true, allows: true, key: newKey(t)}
	checker, clock := c.checker(disk{})
	caller := answer.Caller{Token: c.token(t, nil)}
	for range 3 {
		_ = checker.Check(t.Context(), caller, list("shop"))
	}
	if c.asked != 2 {
		t.Errorf("asked %d times, want once who it is and once whether they may", c.asked)
	}
	clock.SetTime(now.Add(6 * time.Minute))
	c.allows = false
	if got := code(checker.Check(t.Context(), caller, list("shop"))); got != 403 {
		t.Errorf("%d after the right was taken away", got)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	store := disk{}
	clock := clocktesting.NewFakePassiveClock(now)
	m := NewMemory(store, clock)
	for i := range kept + 10 {
		clock.SetTime(now.Add(time.Duration(i) * time.Second))
		m.learn(question{user: fmt.Sprint(i)}, true)
	}
	if len(store) != kept {
		t.Errorf("%d are kept, want %d", len(store), kept)
	}
	if m := NewMemory(store, clock); m.remembers(question{user: "0"}) || !m.remembers(question{user: fmt.Sprint(kept)}) {
		t.Error("not the oldest were forgotten")
	}
}

// forged is a token with another header and the signature that sign makes, or none.
func forged(t *testing.T, token, header string, sign func(signed string) []byte) string {
	t.Helper()
	parts := strings.Split(token, ".")
	signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + parts[1]
	var signature []byte
	if sign != nil {
		signature = sign(signed)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// withPublicKey signs as if the issuer's public key were a secret.
func withPublicKey(t *testing.T, key *ecdsa.PrivateKey) func(string) []byte {
	return func(signed string) []byte {
		der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, der)
		mac.Write([]byte(signed))
		return mac.Sum(nil)
	}
}

// bindTo binds a token to a node and no pod.
func bindTo(node string) func(*satoken.Claims) {
	return func(c *satoken.Claims) {
		c.Kubernetes.Pod = nil
		c.Kubernetes.Node = &struct {
			Name string `json:"name"`
		}{node}
	}
}

func TestTokensWhileCutOff(t *testing.T) {
	c := &cluster{key: newKey(t)}
	stranger := &cluster{key: newKey(t)}
	cases := map[string]struct {
		token string
		want  string // name of the user, or nothing
	}{
		"of a pod on this node":            {token: c.token(t, nil), want: "system:serviceaccount:shop:till"},
		"of a pod that is gone":            {token: c.token(t, func(c *satoken.Claims) { c.Kubernetes.Pod.UID = "uid-0" })},
		"bound to nothing":                 {token: c.token(t, func(c *satoken.Claims) { c.Kubernetes.Pod = nil }), want: "system:serviceaccount:shop:till"},
		"bound to this node":               {token: c.token(t, bindTo("edge-1")), want: "system:serviceaccount:shop:till"},
		"bound to another node":            {token: c.token(t, bindTo("edge-2"))},
		"expired":                          {token: c.token(t, func(c *satoken.Claims) { c.Expiry = jwt.NewNumericDate(now.Add(-time.Second)) })},
		"without an end":                   {token: c.token(t, func(c *satoken.Claims) { c.Expiry = nil })},
		"not valid yet":                    {token: c.token(t, func(c *satoken.Claims) { c.NotBefore = jwt.NewNumericDate(now.Add(time.Hour)) })},
		"for another audience":             {token: c.token(t, func(c *satoken.Claims) { c.Audience = jwt.Audience{"vault"} })},
		"of another issuer":                {token: c.token(t, func(c *satoken.Claims) { c.Issuer = "https://other" })},
		"signed by a stranger":             {token: stranger.token(t, nil)},
		"no token at all":                  {token: "x"},
		"of a pod of the same name before": {token: c.token(t, func(c *satoken.Claims) { c.Kubernetes.Pod.UID = "uid-of-before" })},
		"of a pod of another namespace":    {token: c.token(t, func(c *satoken.Claims) { c.Kubernetes.Namespace = "kube-system" })},
		"that nobody signed":               {token: forged(t, c.token(t, nil), `{"alg":"none","kid":"1"}`, nil)},
		"that nobody signed, in capitals":  {token: forged(t, c.token(t, nil), `{"alg":"NONE"}`, nil)},
		"signed with the public key":       {token: forged(t, c.token(t, nil), `{"alg":"HS256","kid":"1"}`, withPublicKey(t, c.key))},
		"with the id of another key":       {token: forged(t, stranger.token(t, nil), `{"alg":"ES256","kid":"1"}`, func(string) []byte { return make([]byte, 64) })},
		"with the id of no key":            {token: forged(t, c.token(t, nil), `{"alg":"ES256","kid":"9"}`, func(string) []byte { return make([]byte, 64) })},
		"with a key of its own":            {token: forged(t, stranger.token(t, nil), `{"alg":"ES256","jwk":{"kty":"EC"}}`, func(string) []byte { return make([]byte, 64) })},
		"of two parts":                     {token: "e30.e30"},
		"of many parts":                    {token: strings.Repeat("e30.", 1000)},
		"encrypted":                        {token: "e30.e30.e30.e30.e30"},
		"of a megabyte":                    {token: strings.Repeat("a", 1<<20)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			checker, _ := c.checker(disk{})
			user, err := checker.identify(t.Context(), tc.token)
			if user.Name != tc.want {
				t.Errorf("user %q, want %q (%v)", user.Name, tc.want, err)
			}
			if tc.want == "" && code(err) != 401 {
				t.Errorf("refused with %v, want 401", err)
			}
		})
	}
	t.Run("without keys nobody can say", func(t *testing.T) {
		checker, _ := c.checker(disk{})
		checker.Tokens.Keys = func() (*jose.JSONWebKeySet, string) { return nil, "" }
		if _, err := checker.identify(t.Context(), c.token(t, nil)); code(err) != 503 {
			t.Errorf("refused with %v, want 503", err)
		}
	})
}

func TestQuestionsAreToldApartWhateverIsInThem(t *testing.T) {
	of := func(user string, groups ...string) question {
		return question{user: user, groups: joined(groups), verb: "get"}
	}
	cases := map[string]struct {
		a, b question
		same bool
	}{
		"the order of groups is none":        {a: of("u", "a", "b"), b: of("u", "b", "a"), same: true},
		"a comma in the name of a group":     {a: of("u", "cn=a,ou=b"), b: of("u", "cn=a", "ou=b")},
		"a backslash before a comma":         {a: of("u", `a\`, "b"), b: of("u", `a\,b`)},
		"the end of a field in a name":       {a: of("u\x00a"), b: of("u", "a")},
		"a field that begins where one ends": {a: question{namespace: "a", name: "b"}, b: question{subresource: "a", namespace: "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if same := tc.a.key() == tc.b.key(); same != tc.same {
				t.Errorf("%q and %q are the same: %v, want %v", tc.a.key(), tc.b.key(), same, tc.same)
			}
		})
	}
}

func TestAnAnswerAboutAPartIsNoneAboutTheWhole(t *testing.T) {
	c := &cluster{linked: true, allows: true, key: newKey(t)}
	checker, _ := c.checker(disk{})
	review := func(selector *authorizationv1.FieldSelectorAttributes) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "u", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", FieldSelector: selector},
		}}
		if err := checker.ReviewAccess(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	if !review(&authorizationv1.FieldSelectorAttributes{RawSelector: "spec.nodeName=edge-1"}) {
		t.Fatal("not allowed while linked")
	}
	c.linked = false
	if review(nil) {
		t.Error("a part was allowed, and now the whole is")
	}
	c.linked = true
	review(nil)
	c.linked = false
	if !review(nil) || !review(&authorizationv1.FieldSelectorAttributes{RawSelector: "spec.nodeName=edge-1"}) {
		t.Error("the whole was allowed, and is not remembered")
	}
}

func TestCallersCannotHaveTheNodeAskWithoutEnd(t *testing.T) {
	c := &cluster{linked: true, allows: true, key: newKey(t)}
	checker, clock := c.checker(disk{})
	for i := range 1000 {
		_ = checker.Check(t.Context(), answer.Caller{Token: fmt.Sprint("made up ", i)}, list("shop"))
	}
	if c.asked > asksAtOnce+1 {
		t.Errorf("the API server was asked %d times, want at most %d", c.asked, asksAtOnce)
	}
	if user, err := checker.identify(t.Context(), c.token(t, nil)); err != nil || user.Name != "system:serviceaccount:shop:till" {
		t.Errorf("a good token is refused meanwhile: %v", err)
	}
	clock.SetTime(now.Add(time.Minute))
	before := c.asked
	_ = checker.Check(t.Context(), answer.Caller{Token: "made up"}, list("shop"))
	if c.asked == before {
		t.Error("never asked again")
	}
}

func TestARefusedTokenIsNotAskedAboutAtOnceAgain(t *testing.T) {
	c := &cluster{key: newKey(t)}
	checker, clock := c.checker(disk{})
	asked := 0
	checker.Linked = func() bool { return true }
	checker.Ask = func(_ context.Context, _ string, _ any) error {
		asked++
		return nil // not authenticated
	}
	for range 5 {
		if _, err := checker.identify(t.Context(), "x"); code(err) != 401 {
			t.Errorf("refused with %v, want 401", err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	clock.SetTime(now.Add(tokenFresh))
	_, _ = checker.identify(t.Context(), "x")
	if asked != 2 {
		t.Errorf("asked %d times in all, want again after a while", asked)
	}
}
