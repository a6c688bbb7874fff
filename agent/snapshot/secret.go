package snapshot

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/agent/snapshot/vault"
)

// What is secret: values of secrets, also in the overlay, and tokens. Names are not.

// place is what an encrypted value is bound to.
func place(record durable.Record) string { return record.Bucket + "\x00" + record.Key }

// protect encrypts a value if its resource is secret.
func protect(v *vault.Vault, record durable.Record, resource schema.GroupVersionResource, value []byte) []byte {
	if resource.GroupResource() != Secrets.GroupResource() {
		return value
	}
	return v.Encrypt(place(record), value)
}

// reveal undoes protect. It is false for a value that no key opens.
func (o *Objects) reveal(record durable.Record, resource schema.GroupVersionResource, value []byte) ([]byte, bool) {
	if resource.GroupResource() != Secrets.GroupResource() {
		return value, true
	}
	return o.decrypt(record, value)
}

func (o *Objects) decrypt(record durable.Record, value []byte) ([]byte, bool) {
	value, err := o.vault.Decrypt(place(record), value)
	if err != nil {
		o.locked++
		return nil, false
	}
	return value, true
}

// unknown ends the knowledge of all that covers a scope.
func (s *state) unknown(scope Scope) {
	for other := range s.scopes {
		if other.covers(scope) {
			delete(s.scopes, other)
		}
	}
}
