package mirror

import (
	"crypto/ecdsa"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-logr/logr"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

func signed(t *testing.T, key *ecdsa.PrivateKey, end time.Time) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(jwt.Claims{Expiry: jwt.NewNumericDate(end)}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestReplay(t *testing.T) {
	store, err := snapshot.Open(t.TempDir(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	objects := store.Objects()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	m := New(objects, func() time.Time { return noon }, func() { told++ })
	key := newKey(t)
	pod := snapshot.Object{Namespace: "shop", Name: "web", UID: "u-1", ResourceVersion: "5", Raw: []byte(`{"metadata":{"name":"web","namespace":"shop","uid":"u-1"}}`)}
	must(objects.Sync(snapshot.Scope{Resource: pods}, "5", []snapshot.Object{pod}))
	// The API server told kubelet an hour; the text of the first is good for a year.
	long, short := signed(t, key, noon.Add(365*24*time.Hour)), signed(t, key, noon.Add(-time.Hour))
	must(objects.PutToken(tokenKey("u-1", "shop", "default", nil, 3607), snapshot.Token{Token: long, Issued: noon.Add(-3 * time.Hour), Expires: noon.Add(-2 * time.Hour)}))
	must(objects.PutToken(tokenKey("u-1", "shop", "default", []string{"vault"}, 600), snapshot.Token{Token: short, Issued: noon.Add(-3 * time.Hour), Expires: noon.Add(-time.Hour)}))
	expired := func() bool {
		return slices.ContainsFunc(m.Report().Findings, func(f v1alpha1.Finding) bool { return f.Reason == v1alpha1.ReasonTokenExpired })
	}

	status, err := m.Replay("u-1", "shop", "default", nil, 3607, noon)
	if err != nil || status.Token != long || !status.ExpirationTimestamp.Time.Equal(noon.Add(10*time.Minute)) {
		t.Errorf("got an expiry of %s, %v", status.ExpirationTimestamp, err)
	}
	if expired() {
		t.Error("a token that is good for a year counts as expired")
	}
	before := told
	status, err = m.Replay("u-1", "shop", "default", []string{"vault"}, 600, noon)
	if err != nil || status.Token != short || !status.ExpirationTimestamp.Time.Equal(noon.Add(2*time.Minute)) {
		t.Errorf("an expired token: got an expiry of %s, %v", status.ExpirationTimestamp, err)
	}
	if !expired() || told == before {
		t.Error("the replay of an expired token is not told")
	}
	m.Adopt(&snapshot.Spec{Spec: v1alpha1.NodeRecoverySpec{Snapshot: v1alpha1.Snapshot{ServiceAccountTokens: v1alpha1.TokensOmit}}})
	if _, err := m.Replay("u-1", "shop", "default", nil, 3607, noon); !errors.Is(err, ErrTokensOmitted) {
		t.Errorf("with Omit got %v", err)
	}
	m.Adopt(nil)
	must(objects.Apply(snapshot.Scope{Resource: pods}, snapshot.Deleted, pod))
	if _, err := m.Replay("u-1", "shop", "default", nil, 3607, noon); !errors.Is(err, ErrNoToken) {
		t.Errorf("a pod that is gone got %v", err)
	}
}
