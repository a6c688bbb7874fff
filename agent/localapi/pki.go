package localapi

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/keyutil"

	"rekindle.edge/agent/host"
)

// PKIDir is the name of a directory with a PKI.
const PKIDir = "pki"

// Names of the files in a directory of PKI. CAFile is what clients trust.
const (
	CAFile      = "ca.crt"
	caKeyFile   = "ca.key"
	servingFile = "serving.crt"
	servingKey  = "serving.key"
)

// A node without a clock battery starts in the past, and nobody renews these.
var (
	notBefore = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// PKI is the agent's own authority and the certificate that it serves with.
type PKI struct {
	// CA is the authority's certificate in PEM.
	CA      []byte
	Serving tls.Certificate
}

// LoadPKI takes the PKI from the first of the directories that holds one, makes it if
// none does, and writes it to those that lack it. Hosts are the names and addresses that
// the serving certificate must cover: if they have changed, the same authority signs a
// new one. The PKI is usable also when an error is returned, unless it is zero: an
// error then says which directory could not be used.
func LoadPKI(dirs []string, hosts []string) (PKI, error) {
	var files map[string][]byte
	var errs []error
	for _, dir := range dirs {
		found, err := readPKI(dir)
		if err == nil {
			files = found
			break
		}
		if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("certificates of the local API in %s: %w; making new ones", dir, err))
		}
	}
	if files == nil {
		made, err := newAuthority()
		if err != nil {
			return PKI{}, err
		}
		files = made
	}
	serving, err := tls.X509KeyPair(files[servingFile], files[servingKey])
	if err != nil || !serves(serving.Leaf, files[CAFile], hosts) {
		if serving, err = sign(files, hosts); err != nil {
			return PKI{}, err
		}
	}
	for _, dir := range dirs {
		if err := writePKI(dir, files); err != nil {
			errs = append(errs, fmt.Errorf("keeping the certificates of the local API: %w", err))
		}
	}
	return PKI{CA: files[CAFile], Serving: serving}, errors.Join(errs...)
}

// readPKI gives the files by name. The authority must be whole; the serving pair may be
// missing, it is signed anew.
func readPKI(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range []string{CAFile, caKeyFile, servingFile, servingKey} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && (name == CAFile || name == caKeyFile) {
			return nil, err
		}
		files[name] = data
	}
	if _, err := tls.X509KeyPair(files[CAFile], files[caKeyFile]); err != nil {
		return nil, err
	}
	return files, nil
}

func newAuthority() (map[string][]byte, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "rekindle-agent"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	certificate, key, err := issue(template, nil, nil)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{CAFile: certificate, caKeyFile: key}, nil
}

// sign makes a serving pair and puts it into files.
func sign(files map[string][]byte, hosts []string) (tls.Certificate, error) {
	authority, err := tls.X509KeyPair(files[CAFile], files[caKeyFile])
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("authority of the local API: %w", err)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "rekindle-agent local API"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range hosts {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	if files[servingFile], files[servingKey], err = issue(template, authority.Leaf, authority.PrivateKey); err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(files[servingFile], files[servingKey])
}

// issue makes a key and a certificate of the template, both in PEM, signed by the parent
// or, without one, by itself.
func issue(template, parent *x509.Certificate, signer crypto.PrivateKey) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key for the local API: %w", err)
	}
	if parent == nil {
		parent, signer = template, private
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, fmt.Errorf("making a serial number for the local API: %w", err)
	}
	template.NotBefore, template.NotAfter = notBefore, notAfter
	der, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate for the local API: %w", err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, nil
}

// serves says whether clients that trust the authority accept the certificate for all of
// the hosts. A power cut may have left a pair of another authority.
func serves(certificate *x509.Certificate, authority []byte, hosts []string) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	for _, name := range hosts {
		options := x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: notBefore}
		if _, err := certificate.Verify(options); err != nil {
			return false
		}
	}
	return true
}

// writePKI writes what differs.
func writePKI(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{servingKey, servingFile, caKeyFile, CAFile} {
		path := filepath.Join(dir, name)
		if data, err := os.ReadFile(path); err == nil && string(data) == string(files[name]) {
			continue
		}
		if err := host.WriteFile(path, files[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}
