package wiring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// node is a root directory with these files.
func node(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const kubeadmDropIn = `# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_EXTRA_ARGS
`

func TestGenerate(t *testing.T) {
	tests := map[string]struct {
		files     map[string]string
		want      string // the last ExecStart
		wantError string
	}{
		"kubeadm's drop-in replaces the unit's command": {
			files: map[string]string{
				"/usr/lib/systemd/system/kubelet.service":                   "[Service]\nExecStart=/usr/bin/kubelet\n",
				"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": kubeadmDropIn,
			},
			want: "/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_EXTRA_ARGS $REKINDLE_KUBELET_ARGS",
		},
		"the administrator's unit is stronger than the package's": {
			files: map[string]string{
				"/usr/lib/systemd/system/kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet --old\n",
				"/etc/systemd/system/kubelet.service":     "[Service]\nExecStart=/usr/bin/kubelet --new\n",
			},
			want: "/usr/bin/kubelet --new $REKINDLE_KUBELET_ARGS",
		},
		"a drop-in hides one of the same name in a weaker place": {
			files: map[string]string{
				"/usr/lib/systemd/system/kubelet.service":          "[Service]\nExecStart=/a\n",
				"/usr/lib/systemd/system/kubelet.service.d/x.conf": "[Service]\nExecStart=\nExecStart=/b\n",
				"/etc/systemd/system/kubelet.service.d/x.conf":     "",
			},
			want: "/a $REKINDLE_KUBELET_ARGS",
		},
		"a command over several lines stays one": {
			files: map[string]string{"/etc/systemd/system/kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet \\\n  --a \\\n  --b=\"x y\"\n"},
			want:  "/usr/bin/kubelet \\\n  --a \\\n  --b=\"x y\" $REKINDLE_KUBELET_ARGS",
		},
		"an ExecStart of another section is none": {
			files: map[string]string{"/etc/systemd/system/kubelet.service": "[X-Other]\nExecStart=/x\n[Service]\nExecStart=/a\n"},
			want:  "/a $REKINDLE_KUBELET_ARGS",
		},
		"there is no kubelet": {
			wantError: "no unit kubelet.service",
		},
		"two commands cannot be given arguments": {
			files:     map[string]string{"/etc/systemd/system/kubelet.service": "[Service]\nExecStart=/a\nExecStart=/b\n"},
			wantError: "starts 2 commands",
		},
		"a masked unit has no command": {
			files:     map[string]string{"/etc/systemd/system/kubelet.service": ""},
			wantError: "starts 0 commands",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			err := Generate(node(t, tc.files), out, "kubelet.service", "containerd.service")
			content, readErr := os.ReadFile(filepath.Join(out, "kubelet.service.d", dropInName))
			if tc.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantError) {
					t.Errorf("error %v, want one with %q", err, tc.wantError)
				}
				if readErr == nil {
					t.Error("a drop-in was written all the same")
				}
				return
			}
			if err != nil || readErr != nil {
				t.Fatal(err, readErr)
			}
			_, after, _ := strings.Cut(string(content), "ExecStart=\nExecStart=")
			if diff := cmp.Diff(tc.want+"\n", after); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A second load must not see the drop-in of the first.
func TestGenerateIsNotItsOwnInput(t *testing.T) {
	root := node(t, map[string]string{"/etc/systemd/system/kubelet.service": "[Service]\nExecStart=/a\n"})
	generated := filepath.Join(root, "run/systemd/generator")
	for range 2 {
		if err := Generate(root, generated, "kubelet.service", "containerd.service"); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(filepath.Join(generated, "kubelet.service.d", dropInName))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(content), "$"+argsVariable); got != 1 {
		t.Errorf("the argument is there %d times", got)
	}
}
