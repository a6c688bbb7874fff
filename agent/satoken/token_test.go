package satoken

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
)

var ends = time.Date(2026, 11, 30, 13, 0, 0, 0, time.UTC)

// signed is a token with claims, by key.
func signed(t *testing.T, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestRead(t *testing.T) {
	issuer := newKey(t)
	known := &jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: issuer.Public(), KeyID: "1", Algorithm: string(jose.ES256)}}}
	bound := map[string]any{
		"iss": "us", "aud": []string{"us"}, "exp": ends.Unix(),
		"kubernetes.io": map[string]any{
			"namespace": "shop", "serviceaccount": map[string]any{"name": "web", "uid": "u1"}, "pod": map[string]any{"name": "web-0", "uid": "u2"},
		},
	}
	type read struct {
		Issuer, Namespace, Account, Pod, Node string
		Ends                                  time.Time
	}
	all := read{Issuer: "us", Namespace: "shop", Account: "web u1", Pod: "web-0 u2", Ends: ends}
	cases := map[string]struct {
		token   string
		keys    *jose.JSONWebKeySet
		want    read
		wantErr string
	}{
		"a token of the issuer's":                 {token: signed(t, jose.ES256, issuer, bound), keys: known, want: all},
		"the same while no keys are known":        {token: signed(t, jose.ES256, issuer, bound), want: all},
		"another's is not looked at without keys": {token: signed(t, jose.ES256, newKey(t), bound), want: all},
		"a token that another signed":             {token: signed(t, jose.ES256, newKey(t), bound), keys: known, wantErr: ErrSignature.Error()},
		"a secret instead of a key":               {token: signed(t, jose.HS256, make([]byte, 32), bound), wantErr: "not a token signed"},
		"no token":                                {token: "x", wantErr: "not a token signed"},
		"a token of nothing but an account": {
			token: signed(t, jose.ES256, issuer, map[string]any{"kubernetes.io": map[string]any{"serviceaccount": map[string]any{"name": "web"}}}), keys: known,
			want: read{Account: "web "},
		},
		"a token that is bound to a node": {
			token: signed(t, jose.ES256, issuer, map[string]any{"kubernetes.io": map[string]any{"node": map[string]any{"name": "edge-1"}}}), keys: known,
			want: read{Account: " ", Node: "edge-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claims, err := Read(tc.token, tc.keys)
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("got %v, want %q", err, tc.wantErr)
			}
			if err != nil {
				return
			}
			k := claims.Kubernetes
			got := read{Issuer: claims.Issuer, Namespace: k.Namespace, Account: k.ServiceAccount.Name + " " + k.ServiceAccount.UID}
			if k.Pod != nil {
				got.Pod = k.Pod.Name + " " + string(k.Pod.UID)
			}
			if k.Node != nil {
				got.Node = k.Node.Name
			}
			if end, ok := End(tc.token); ok {
				got.Ends = end.UTC()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoTokenHasNoEnd(t *testing.T) {
	if end, ok := End("x"); ok {
		t.Errorf("it ends at %s", end)
	}
}
