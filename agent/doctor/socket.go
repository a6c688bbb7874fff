package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// path of the question.
const path = "/v1/readiness"

// askTimeout bounds the whole question: an agent that hangs is as one that is not there.
const askTimeout = 2 * time.Second

// Serve answers on a Unix socket, which root alone can reach, until ctx ends. A socket that
// an agent before this one has left is taken over.
func Serve(ctx context.Context, socket string, report func() Report) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return fmt.Errorf("socket for doctor: %w", err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("socket for doctor: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("socket for doctor: %w", err)
	}
	// Until here the umask of the unit has kept it from others.
	if err := os.Chmod(socket, 0o600); err != nil {
		return errors.Join(fmt.Errorf("socket for doctor: %w", err), listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report()) // a client that is gone
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: askTimeout}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("socket for doctor: %w", err)
	}
	return nil
}

// Ask asks the running agent.
func Ask(ctx context.Context, socket string) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent"+path, nil)
	if err != nil {
		return Report{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return Report{}, fmt.Errorf("asking the agent: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var report Report
	if response.StatusCode != http.StatusOK {
		return Report{}, fmt.Errorf("asking the agent: %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&report); err != nil {
		return Report{}, fmt.Errorf("asking the agent: %w", err)
	}
	return report, nil
}
