// Package kubeletpki cares for the certificates that kubelet makes itself. Kubelet does not
// sync them: when the power goes within seconds of its first start, the next one finds an
// empty serving certificate and exits, at every start from then on.
package kubeletpki

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Kubelet's names below its directory of certificates.
const (
	servingCert   = "kubelet.crt"
	servingKey    = "kubelet.key"
	clientCurrent = "kubelet-client-current.pem"
	// damaged is appended to the name of what was moved aside. One is kept.
	damaged = ".damaged"
)

// Damage says what is wrong with the serving certificate in kubelet's directory of
// certificates, empty if nothing is. One that is not there is none: kubelet makes it, or was
// given another.
func Damage(dir string) string {
	cert, certErr := os.ReadFile(filepath.Join(dir, servingCert))
	key, keyErr := os.ReadFile(filepath.Join(dir, servingKey))
	noCert, noKey := errors.Is(certErr, fs.ErrNotExist), errors.Is(keyErr, fs.ErrNotExist)
	switch {
	case noCert && noKey:
		return ""
	case noCert || noKey:
		return "one of " + servingCert + " and " + servingKey + " is missing"
	case certErr != nil || keyErr != nil:
		return "" // nothing is known of what cannot be read
	case len(cert) == 0 || len(key) == 0:
		return "one of " + servingCert + " and " + servingKey + " is empty"
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return fmt.Sprintf("%s and %s are no pair: %v", servingCert, servingKey, err)
	}
	return ""
}

// Mend moves a damaged serving certificate and its key aside, so that kubelet makes new ones,
// and says what was wrong. It is called before kubelet starts. When the power goes in
// between, one of the two is left, which is a damage as well.
func Mend(dir string) (found string, err error) {
	if found = Damage(dir); found == "" {
		return "", nil
	}
	for _, name := range []string{servingCert, servingKey} {
		path := filepath.Join(dir, name)
		if err := os.Rename(path, path+damaged); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return found, fmt.Errorf("moving kubelet's serving certificate aside: %w", err)
		}
	}
	return found, syncPath(dir)
}

// ClientDamage says what is wrong with kubelet's client certificate, empty if nothing is. It
// is only told: the API server signed it, and nobody on the node can make another.
func ClientDamage(dir string) string {
	path := filepath.Join(dir, clientCurrent)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return path + " leads to a file that is gone"
		}
		return "" // kubelet's kubeconfig names another
	}
	if err == nil {
		_, err = tls.X509KeyPair(data, data)
	}
	if err != nil {
		return fmt.Sprintf("%s cannot be used: %v", path, err)
	}
	return ""
}

func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
