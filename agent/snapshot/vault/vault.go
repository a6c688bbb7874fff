// Package vault encrypts values that are secret, with a key in a file beside the store.
//
// The key is sealed by the machine where that works, with its TPM or systemd's host key.
// A key that cannot be unsealed does not keep the agent from starting: what it encrypted
// counts as absent, new values get a new key, and the old one is kept in case the machine
// remembers it at the next start.
package vault

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/host"
)

const (
	plainName  = "store.key"
	sealedName = "store.key.sealed"
	// lostMark ends the name of a key that could not be used.
	lostMark = ".lost"
	keySize  = 32
	// sealTimeout bounds a call of the sealer; kubelet waits for the agent.
	sealTimeout = 3 * time.Second
	// format is the first byte of every encrypted value.
	format = 1
)

// ErrLocked says that no key opens the value.
var ErrLocked = errors.New("it was encrypted with a key that is not available")

// Sealer protects the key with what only this machine has.
type Sealer interface {
	Seal(ctx context.Context, key []byte) ([]byte, error)
	Unseal(ctx context.Context, sealed []byte) ([]byte, error)
}

// Vault encrypts and decrypts. It is safe for concurrent use.
type Vault struct {
	// keys open values; the first one encrypts.
	keys []cipher.AEAD
	// problem says why an older key is not there.
	problem error

	mu sync.Mutex
	// save makes a new key durable; nil: it is.
	save func() error
}

// Open reads the key in dir, and makes one if there is none, which Save then keeps. Sealer
// may be nil. It always succeeds; Problem says what is missing.
func Open(ctx context.Context, dir string, sealer Sealer, log logr.Logger) *Vault {
	v := &Vault{}
	key, err := current(ctx, dir, sealer)
	if err != nil {
		log.Error(err, "Key of the store cannot be used, secrets and tokens on this node's disk cannot be read")
		v.problem = err
	}
	if key == nil {
		key = make([]byte, keySize)
		_, _ = rand.Read(key) // never fails
		v.save = func() error { return keep(context.WithoutCancel(ctx), dir, sealer, key, log) }
	}
	for _, key := range [][]byte{key, lost(ctx, dir, sealer)} {
		if aead := newAEAD(key); aead != nil {
			v.keys = append(v.keys, aead)
		}
	}
	return v
}

// Problem says why older values cannot be decrypted; nil: they can.
func (v *Vault) Problem() error { return v.problem }

// Save makes a new key durable. It is to be called before what was encrypted with it is
// written.
func (v *Vault) Save() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.save == nil {
		return nil
	}
	if err := v.save(); err != nil {
		return fmt.Errorf("key of the store: %w", err)
	}
	v.save = nil
	return nil
}

// Encrypt binds a value to its place, so that it cannot pass for another one.
func (v *Vault) Encrypt(place string, value []byte) []byte {
	aead := v.keys[0]
	out := make([]byte, 1+aead.NonceSize(), 1+aead.NonceSize()+len(value)+aead.Overhead())
	out[0] = format
	nonce := out[1:]
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(out, nonce, value, []byte(place))
}

// Decrypt is the value that was encrypted at a place.
func (v *Vault) Decrypt(place string, encrypted []byte) ([]byte, error) {
	if len(encrypted) == 0 || encrypted[0] != format {
		return nil, ErrLocked
	}
	for _, aead := range v.keys {
		if len(encrypted) < 1+aead.NonceSize() {
			continue
		}
		nonce, rest := encrypted[1:1+aead.NonceSize()], encrypted[1+aead.NonceSize():]
		if value, err := aead.Open(nil, nonce, rest, []byte(place)); err == nil {
			return value, nil
		}
	}
	return nil, ErrLocked
}

func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if len(key) != keySize || err != nil {
		return nil
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil
	}
	return aead
}

// current is the key in dir, nil if there is none.
func current(ctx context.Context, dir string, sealer Sealer) ([]byte, error) {
	if key, err := readSealed(ctx, filepath.Join(dir, sealedName), sealer); key != nil || err != nil {
		return key, err
	}
	return readPlain(filepath.Join(dir, plainName))
}

// lost is a key that could not be used at an earlier start, nil if it still cannot.
func lost(ctx context.Context, dir string, sealer Sealer) []byte {
	key, err := readSealed(ctx, filepath.Join(dir, sealedName+lostMark), sealer)
	if err != nil {
		return nil
	}
	return key
}

func readSealed(ctx context.Context, path string, sealer Sealer) ([]byte, error) {
	sealed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if sealer == nil {
		return nil, fmt.Errorf("%s: nothing here unseals it", path)
	}
	ctx, cancel := context.WithTimeout(ctx, sealTimeout)
	defer cancel()
	key, err := sealer.Unseal(ctx, sealed)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be unsealed: was the disk moved, or the TPM cleared? %w", path, err)
	}
	return checked(path, key)
}

func readPlain(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return checked(path, key)
}

func checked(path string, key []byte) ([]byte, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("%s has %d bytes, a key has %d", path, len(key), keySize)
	}
	return key, nil
}

// keep writes a new key, sealed if the machine can both seal and unseal it. One that is
// there could not be used; the latest such is kept.
func keep(ctx context.Context, dir string, sealer Sealer, key []byte, log logr.Logger) error {
	for _, name := range []string{sealedName, plainName} {
		path := filepath.Join(dir, name)
		if err := os.Rename(path, path+lostMark); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if sealer != nil {
		sealed, err := tryToSeal(ctx, sealer, key)
		if err == nil {
			return host.WriteFile(filepath.Join(dir, sealedName), sealed, 0o600)
		}
		log.Info("Key of the store cannot be sealed on this machine, it lies in a file", "reason", err.Error())
	}
	return host.WriteFile(filepath.Join(dir, plainName), key, 0o600)
}

func tryToSeal(ctx context.Context, sealer Sealer, key []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, sealTimeout)
	defer cancel()
	sealed, err := sealer.Seal(ctx, key)
	if err != nil {
		return nil, err
	}
	back, err := sealer.Unseal(ctx, sealed)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(back, key) {
		return nil, errors.New("what was unsealed is not what was sealed")
	}
	return sealed, nil
}
