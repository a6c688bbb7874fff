package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Where systemd-creds finds what it seals with.
const (
	hostKey   = "/var/lib/systemd/credential.secret"
	tpmDevice = "/dev/tpmrm0"
)

// SystemdCreds seals with systemd-creds: with the TPM, or with the host's key where it has
// one. A host key is not made for it, since an uninstalled agent leaves nothing behind, and
// one on the same disk protects from little. The TPM's part is bound to no measurement, so
// that an update of firmware or kernel does not lose the secrets.
type SystemdCreds struct{}

// Seal implements Sealer.
func (SystemdCreds) Seal(ctx context.Context, key []byte) ([]byte, error) {
	with := "host"
	if there(tpmDevice) {
		with = "tpm2"
	} else if !there(hostKey) {
		return nil, errors.New("it has no TPM, and systemd no key of the host")
	}
	return creds(ctx, key, "encrypt", "--with-key="+with, "--tpm2-pcrs=")
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Unseal implements Sealer.
func (SystemdCreds) Unseal(ctx context.Context, sealed []byte) ([]byte, error) {
	return creds(ctx, sealed, "decrypt")
}

func creds(ctx context.Context, input []byte, verb string, options ...string) ([]byte, error) {
	arguments := append([]string{verb, "--name=rekindle-store-key"}, options...)
	command := exec.CommandContext(ctx, "systemd-creds", append(arguments, "-", "-")...)
	command.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("systemd-creds %s: %w: %s", verb, err, strings.TrimSpace(stderr.String()))
	}
	return output, nil
}
