package mirror

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot"
)

func TestPlanTokens(t *testing.T) {
	root := tokenSource{ExpirationSeconds: 3607}
	vault := tokenSource{Audience: "vault", ExpirationSeconds: 600}
	web := map[string]podTokens{"u1": {Pod: podName{"shop", "web", "u1"}, Account: "default", Sources: []tokenSource{root, vault}}}
	key := func(source tokenSource) snapshot.TokenKey {
		return tokenKey("u1", "shop", "default", source.audiences(), source.ExpirationSeconds)
	}
	aged := func(age, life time.Duration) snapshot.Token {
		return snapshot.Token{Issued: noon.Add(-age), Expires: noon.Add(life - age)}
	}
	type tokens = map[snapshot.TokenKey]snapshot.Token

	cases := map[string]struct {
		wanted map[string]podTokens
		stored tokens
		omit   bool
		tried  map[snapshot.TokenKey]time.Time
		fetch  []tokenSource
		drop   []snapshot.TokenKey
	}{
		"a new pod gets all":                          {wanted: web, fetch: []tokenSource{root, vault}},
		"one that is young stays":                     {wanted: web, stored: tokens{key(root): aged(0, time.Hour)}, fetch: []tokenSource{vault}},
		"none is replaced before 70 % of its life":    {wanted: web, stored: tokens{key(root): aged(41*time.Minute, time.Hour), key(vault): aged(6*time.Minute, 10*time.Minute)}},
		"each is replaced before 80 % of its life":    {wanted: web, stored: tokens{key(root): aged(48*time.Minute, time.Hour), key(vault): aged(8*time.Minute, 10*time.Minute)}, fetch: []tokenSource{root, vault}},
		"one that is missing comes before an old one": {wanted: web, stored: tokens{key(root): aged(50*time.Minute, time.Hour)}, fetch: []tokenSource{vault, root}},
		"one that could not be had waits":             {wanted: web, tried: map[snapshot.TokenKey]time.Time{key(root): noon.Add(time.Second)}, fetch: []tokenSource{vault}},
		"a pod that is gone takes its tokens along":   {stored: tokens{key(root): aged(0, time.Hour)}, drop: []snapshot.TokenKey{key(root)}},
		"a projection that has changed is another": {
			wanted: map[string]podTokens{"u1": {Pod: web["u1"].Pod, Account: "default", Sources: []tokenSource{root}}},
			stored: tokens{key(root): aged(0, time.Hour), key(vault): aged(0, time.Hour)}, drop: []snapshot.TokenKey{key(vault)},
		},
		"Omit keeps none and asks for none": {wanted: web, omit: true, stored: tokens{key(root): aged(0, time.Hour)}, drop: []snapshot.TokenKey{key(root)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planTokens(tc.wanted, tc.stored, tc.omit, tc.tried, noon)
			var fetch []tokenSource
			for _, w := range plan.fetch {
				fetch = append(fetch, w.source)
			}
			if diff := cmp.Diff(tc.fetch, fetch); diff != "" {
				t.Errorf("fetch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.drop, plan.drop); diff != "" {
				t.Errorf("drop (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("tokens of one moment are replaced at different ones", func(t *testing.T) {
		at := map[time.Time]bool{}
		for _, uid := range []types.UID{"a", "b", "c", "d", "e", "f"} {
			at[refreshAt(snapshot.TokenKey{PodUID: uid}, aged(0, time.Hour))] = true
		}
		if len(at) < 4 {
			t.Errorf("six tokens are replaced at %d moments", len(at))
		}
	})
}

func TestGenuine(t *testing.T) {
	issuer, proxy := newKey(t), newKey(t)
	keys := &jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: issuer.Public(), KeyID: "k", Algorithm: string(jose.ES256)}}}
	wanted := wantedToken{
		key: tokenKey("u1", "shop", "web", []string{"vault"}, 600), pod: podName{"shop", "web-0", "u1"}, source: tokenSource{"vault", 600},
	}
	claims := func(change func(map[string]any)) map[string]any {
		c := map[string]any{
			"aud": []string{"vault"}, "exp": noon.Add(time.Hour).Unix(),
			"kubernetes.io": map[string]any{"namespace": "shop", "serviceaccount": map[string]any{"name": "web"}, "pod": map[string]any{"name": "web-0", "uid": "u1"}},
		}
		if change != nil {
			change(c)
		}
		return c
	}
	sign := func(key *ecdsa.PrivateKey, c map[string]any) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		token, err := jwt.Signed(signer).Claims(c).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	// As a proxy on the way makes them while it is cut off: HS256, no audience, no pod.
	madeUp := func() string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(strings.Repeat("proxy", 8))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		token, err := jwt.Signed(signer).Claims(map[string]any{"exp": noon.Unix()}).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	cases := map[string]struct {
		token   string
		keys    *jose.JSONWebKeySet
		wantErr string
	}{
		"the issuer's token":                        {token: sign(issuer, claims(nil)), keys: keys},
		"while no keys are known, the claims count": {token: sign(proxy, claims(nil))},
		"a token by another key":                    {token: sign(proxy, claims(nil)), keys: keys, wantErr: "signature"},
		"a token that a proxy made up":              {token: madeUp(), keys: keys, wantErr: "not a token signed"},
		"the same while no keys are known":          {token: madeUp(), wantErr: "not a token signed"},
		"no token at all":                           {token: "", keys: keys, wantErr: "not a token signed"},
		"another audience":                          {token: sign(issuer, claims(func(c map[string]any) { c["aud"] = []string{"api"} })), keys: keys, wantErr: "audience"},
		"another pod": {token: sign(issuer, claims(func(c map[string]any) {
			c["kubernetes.io"].(map[string]any)["pod"] = map[string]any{"uid": "u2"}
		})), keys: keys, wantErr: `pod UID "u2", not "u1"`},
		"no pod":          {token: sign(issuer, claims(func(c map[string]any) { delete(c["kubernetes.io"].(map[string]any), "pod") })), keys: keys, wantErr: "pod UID"},
		"another account": {token: sign(issuer, claims(func(c map[string]any) { c["kubernetes.io"].(map[string]any)["namespace"] = "x" })), keys: keys, wantErr: "service account x/web"},
		"no expiry":       {token: sign(issuer, claims(func(c map[string]any) { delete(c, "exp") })), keys: keys, wantErr: "expiry"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := genuine(tc.token, wanted, tc.keys)
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestTokenKey(t *testing.T) {
	a, b := []string{"b", "a"}, []string{"a", "b"}
	if tokenKey("u", "n", "s", a, 1) != tokenKey("u", "n", "s", b, 1) || !slices.Equal(a, []string{"b", "a"}) {
		t.Error("the order of audiences matters, or was changed")
	}
}
