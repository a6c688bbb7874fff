package snapshot

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/snapshot/durable"
)

// TokenKey is what a service account token was requested for.
type TokenKey struct {
	PodUID         types.UID `json:"podUID"`
	Namespace      string    `json:"namespace"`
	ServiceAccount string    `json:"serviceAccount"`
	// Audiences, sorted and joined by commas; empty: the API server's own.
	Audiences         string `json:"audiences"`
	ExpirationSeconds int64  `json:"expirationSeconds"`
}

// Token is a service account token as the API server issued it.
type Token struct {
	Token  string    `json:"token"`
	Issued time.Time `json:"issued"`
	// Expires as the API server said.
	Expires time.Time `json:"expires"`
}

func (k TokenKey) record() durable.Record {
	// A struct of strings and a number always marshals.
	key, _ := json.Marshal(k)
	return durable.Record{Bucket: bucketTokens, Key: string(key)}
}

// PutToken keeps a token. The first of a key is on the disk when the call returns; one
// that replaces another follows within ten minutes. The token of a pod that was deleted is
// not kept.
func (o *Objects) PutToken(key TokenKey, token Token) error {
	value, err := json.Marshal(token)
	if err != nil {
		return fmt.Errorf("token of pod %s: %w", key.PodUID, err)
	}
	o.mu.Lock()
	if _, gone := o.state.tombstones[string(key.PodUID)]; gone {
		// The request and the deletion have crossed.
		o.mu.Unlock()
		return nil
	}
	_, replaced := o.tokens[key]
	o.tokens[key] = token
	o.mu.Unlock()
	when := durable.Now
	if replaced {
		when = durable.Slow
	}
	record := key.record()
	return o.durable.Write(when, durable.Change{Record: record, Value: o.vault.Encrypt(place(record), value)})
}

// Token is the token of a key, false if there is none.
func (o *Objects) Token(key TokenKey) (Token, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	token, ok := o.tokens[key]
	return token, ok
}

// Tokens are all tokens.
func (o *Objects) Tokens() map[TokenKey]Token {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return maps.Clone(o.tokens)
}

// DeleteToken removes a token. Those of a pod that is deleted go by themselves.
func (o *Objects) DeleteToken(key TokenKey) error {
	o.mu.Lock()
	changes := o.dropTokens(func(other TokenKey) bool { return other == key })
	o.mu.Unlock()
	if len(changes) == 0 {
		return nil
	}
	return o.durable.Write(durable.Soon, changes...)
}

// dropTokens takes tokens out of memory. o.mu is held.
func (o *Objects) dropTokens(which func(TokenKey) bool) []durable.Change {
	var changes []durable.Change
	for key := range o.tokens {
		if which(key) {
			delete(o.tokens, key)
			changes = append(changes, durable.Change{Record: key.record()})
		}
	}
	return changes
}

func (o *Objects) loadToken(key string, value []byte) error {
	var k TokenKey
	var token Token
	if err := json.Unmarshal([]byte(key), &k); err != nil {
		return err
	}
	value, ok := o.decrypt(durable.Record{Bucket: bucketTokens, Key: key}, value)
	if !ok {
		return nil
	}
	if err := json.Unmarshal(value, &token); err != nil {
		return err
	}
	o.tokens[k] = token
	return nil
}
