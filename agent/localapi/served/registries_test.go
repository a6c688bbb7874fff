package served

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEndpoints(t *testing.T) {
	const mirrors = `
server = "https://cloud.example"

[host."http://10.0.0.5:5000"]
  capabilities = ["pull", "resolve"]
[host."http://10.0.0.5:5000".header]
  server = "not this one"
[host.'https://layers.example/v2']
  capabilities = ["pull"]
  override_path = true
[ host."mirror.example" ]
  ca = "ca.crt"
`
	cases := map[string]struct {
		image string
		files map[string]string
		want  []string
	}{
		"an image without a registry": {image: "nginx", want: []string{"https://registry-1.docker.io"}},
		"a path of the default registry": {
			image: "library/nginx:1", want: []string{"https://registry-1.docker.io"},
		},
		"a registry with a port":                     {image: "lan.example:5000/app@sha256:00", want: []string{"https://lan.example:5000"}},
		"a registry on the node itself may be plain": {image: "localhost:5000/app", want: []string{"https://localhost:5000", "http://localhost:5000"}},
		"mirrors that are asked for tags come first": {
			image: "cloud.example/app:1", files: map[string]string{"/etc/containerd/certs.d/cloud.example/hosts.toml": mirrors},
			want: []string{"http://10.0.0.5:5000", "https://mirror.example", "https://cloud.example"},
		},
		"mirrors of a registry with a port": {
			image: "cloud.example:5000/app:1", files: map[string]string{"/etc/docker/certs.d/cloud.example_5000_/hosts.toml": "[host.\"http://lan\"]"},
			want: []string{"http://lan", "https://cloud.example:5000"},
		},
		"mirrors of all registries": {
			image: "nginx", files: map[string]string{"/etc/containerd/certs.d/_default/hosts.toml": "[host.\"http://lan\"]"},
			want: []string{"http://lan", "https://registry-1.docker.io"},
		},
		"a registry that has a directory for certificates alone": {
			image: "cloud.example/app", files: map[string]string{
				"/etc/containerd/certs.d/cloud.example/ca.crt": "",
				"/etc/containerd/certs.d/_default/hosts.toml":  "[host.\"http://lan\"]",
			},
			want: []string{"https://cloud.example"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, content := range tc.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, endpoints(root, registryOf(tc.image))); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
		})
	}
}

// server of one answer, by its address.
func server(t *testing.T, code int) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// silent takes connections and never answers.
func silent(t *testing.T) string {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// refused is where nobody listens.
func refused(t *testing.T) string {
	address := silent(t)
	_, port, _ := net.SplitHostPort(address)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	_, free, _ := net.SplitHostPort(listener.Addr().String())
	if free == port {
		t.Fatal("no free port")
	}
	return "127.0.0.1:" + free
}

func TestRegistriesAnswer(t *testing.T) {
	cases := map[string]struct {
		registry func(t *testing.T) string
		mirror   func(t *testing.T) string
		want     bool
	}{
		"one that wants to know who asks": {registry: func(t *testing.T) string { return server(t, http.StatusUnauthorized) }, want: true},
		"one that is broken":              {registry: func(t *testing.T) string { return server(t, http.StatusBadGateway) }},
		"one that is silent":              {registry: silent},
		"one that is not there":           {registry: refused},
		"one behind a mirror that is not there": {
			registry: func(t *testing.T) string { return server(t, http.StatusOK) }, mirror: refused, want: true,
		},
		"one behind a mirror that is silent, which containerd would wait for": {
			registry: func(t *testing.T) string { return server(t, http.StatusOK) }, mirror: silent,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, registry := t.TempDir(), tc.registry(t)
			if tc.mirror != nil {
				dir := filepath.Join(root, hostRoots[0], registry)
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				hosts := "server = \"http://" + registry + "\"\n[host.\"http://" + tc.mirror(t) + "\"]\n"
				if err := os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(hosts), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := &Registries{Root: root}
			r.Watch(t.Context(), []string{registry + "/app:1", registry + "/app:2"})
			begin := time.Now()
			if got := r.Answers(registry + "/app:1"); got != tc.want {
				t.Errorf("answers: %t, want %t", got, tc.want)
			}
			if took := time.Since(begin); took > 2*registryWait {
				t.Errorf("kubelet's list waited %s", took)
			}
			if r.Answers("other.example/app") {
				t.Error("a registry that was not asked answers")
			}
		})
	}
}

func TestWhatWasSaidOfARegistryIsKeptTo(t *testing.T) {
	address := silent(t)
	r := &Registries{Root: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.Watch(ctx, []string{address + "/app"})
	if r.Answers(address + "/app") {
		t.Fatal("a silent registry answers")
	}
	r.mu.Lock()
	r.known[address].answers = true
	r.mu.Unlock()
	if r.Answers(address + "/app") {
		t.Error("kubelet was told that the image is taken from the node, and now that it is pulled")
	}
}
