package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"

	"rekindle.edge/agent/snapshot"
)

const (
	issuerKind = "issuer"
	issuerKeys = "keys"
	issuerName = "name"
)

// IssuerKeys are the public keys of the service account tokens' issuer as they were last
// read, and the issuer's name. Nil: none were read yet.
func IssuerKeys(objects *snapshot.Objects) (*jose.JSONWebKeySet, string) {
	kept := objects.Remembered(issuerKind)
	var keys jose.JSONWebKeySet
	if json.Unmarshal(kept[issuerKeys], &keys) != nil || len(keys.Keys) == 0 {
		return nil, ""
	}
	return &keys, string(kept[issuerName])
}

// readIssuer keeps the issuer's keys and name.
func (s *session) readIssuer(ctx context.Context) error {
	question, err := s.verify.begin(ctx)
	if err != nil {
		return err
	}
	var keys json.RawMessage
	if err := s.client.readJSON(ctx, "/openid/v1/jwks", nil, &keys); err != nil {
		return err
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(keys, &set); err != nil {
		return fmt.Errorf("/openid/v1/jwks: %w", err)
	}
	if len(set.Keys) == 0 {
		return errors.New("/openid/v1/jwks answers without keys")
	}
	var configuration struct {
		Issuer string `json:"issuer"`
	}
	if err := s.client.readJSON(ctx, "/.well-known/openid-configuration", nil, &configuration); err != nil {
		return err
	}
	if err := s.verify.confirm(ctx, question); err != nil {
		return err
	}
	s.remember(issuerKind, issuerKeys, keys)
	s.remember(issuerKind, issuerName, []byte(configuration.Issuer))
	return nil
}

// remember writes only what is new: an idle node writes nothing.
func (s *session) remember(kind, key string, value []byte) {
	if !bytes.Equal(s.m.objects.Remembered(kind)[key], value) {
		s.m.objects.Remember(kind, key, value)
	}
}
