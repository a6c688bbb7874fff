package wiring

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

const kubeletConf = `apiVersion: v1
kind: Config
clusters:
- name: c
  cluster: {server: "https://cloud:6443", certificate-authority: /etc/ca.crt, tls-server-name: api}
users:
- name: u
  user: {client-certificate: pki/current.pem, client-key: pki/current.pem}
contexts:
- name: x
  context: {cluster: c, user: u}
current-context: x
`

func newHook(t *testing.T) Hook {
	t.Helper()
	own := node(t, map[string]string{"kubelet.conf": kubeletConf})
	return Hook{
		Dir: filepath.Join(t.TempDir(), "rekindle"), Server: "https://127.0.0.1:7443", CA: []byte("ca"),
		Kubeconfigs: []string{"/nonexistent", filepath.Join(own, "kubelet.conf")},
	}
}

func TestHookSet(t *testing.T) {
	hook := newHook(t)
	if hook.IsSet() {
		t.Error("set before it was set")
	}
	if err := hook.set(&made{}); err != nil {
		t.Fatal(err)
	}
	if !hook.IsSet() {
		t.Error("not set")
	}
	config, err := clientcmd.LoadFromFile(filepath.Join(hook.Dir, kubeconfigFile))
	if err != nil {
		t.Fatal(err)
	}
	cluster, user := config.Clusters["c"], config.AuthInfos["u"]
	pem := filepath.Join(filepath.Dir(hook.Kubeconfigs[1]), "pki/current.pem")
	want := []string{hook.Server, "ca", "", "", pem, pem}
	got := []string{
		cluster.Server, string(cluster.CertificateAuthorityData), cluster.CertificateAuthority, cluster.TLSServerName,
		user.ClientCertificate, user.ClientKey,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	env, err := os.ReadFile(filepath.Join(hook.Dir, envFile))
	if err != nil {
		t.Fatal(err)
	}
	name, value, _ := strings.Cut(strings.TrimSpace(string(env)), "=")
	if name != argsVariable || !hook.Wired(append([]string{"kubelet", "--v=2"}, strings.Fields(value)...)) {
		t.Errorf("a kubelet with %s is not wired", env)
	}
}

func TestHookSetNeedsAKubeconfig(t *testing.T) {
	tests := map[string]struct {
		content string
		want    string
	}{
		"it is missing":             {want: "no kubeconfig of kubelet"},
		"it is broken":              {content: "{", want: "kubelet.conf"},
		"it has no current context": {content: strings.Replace(kubeletConf, "current-context: x", "current-context: z", 1), want: `current-context: "z"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			hook := newHook(t)
			if tc.content == "" {
				hook.Kubeconfigs = hook.Kubeconfigs[:1]
			} else if err := os.WriteFile(hook.Kubeconfigs[1], []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			err := hook.set(&made{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if hook.IsSet() {
				t.Error("kubelet would be sent to a kubeconfig that is not there")
			}
		})
	}
}

func TestHookWired(t *testing.T) {
	hook := newHook(t)
	own := []string{"kubelet", "--kubeconfig=/etc/kubernetes/kubelet.conf"}
	tests := map[string]struct {
		args []string
		want bool
	}{
		"the agent's arguments behind kubelet's own": {slices.Concat(own, hook.Args()), true},
		"kubelet's own arguments only":               {own, false},
		"one of the agent's arguments is missing":    {slices.Concat(own, hook.Args()[1:]), false},
		"no arguments": {nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := hook.Wired(tc.args); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestHookPause(t *testing.T) {
	for times, want := range map[int]time.Duration{
		0: 0, 1: time.Minute, 2: 2 * time.Minute, 6: 32 * time.Minute, 7: time.Hour, 100: time.Hour,
	} {
		hook := newHook(t)
		if err := os.MkdirAll(hook.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(hook.Dir, unhookedFile), []byte(strings.Repeat("x\n", times)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := hook.Pause(); got != want {
			t.Errorf("after %d times: %s, want %s", times, got, want)
		}
	}
}
