package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// Listen takes the socket at path from those that systemd gave, or opens it. It is root's
// alone.
func Listen(ctx context.Context, given []net.Listener, path string) (net.Listener, error) {
	for _, listener := range given {
		if listener.Addr().String() != path {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			return listener, nil
		}
		// Somebody has removed it: nobody can connect to what systemd listens on.
		_ = listener.Close()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("gate: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("gate: %w", err), listener.Close())
	}
	return listener, nil
}
