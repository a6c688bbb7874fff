package vault

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// SystemdCreds seals with systemd-creds: with the TPM and the host's key where there is a
// TPM, else with the host's key alone. The TPM's part is bound to no measurement, so that
// an update of firmware or kernel does not lose the secrets.
type SystemdCreds struct{}

// Seal implements Sealer.
func (SystemdCreds) Seal(ctx context.Context, key []byte) ([]byte, error) {
	return creds(ctx, key, "encrypt", "--tpm2-pcrs=")
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
