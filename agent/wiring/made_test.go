package wiring

import (
	"os"
	"strings"
	"testing"
)

func TestKubeconfigIsMadeAnewWhenKubeletsOwnIsAnotherOne(t *testing.T) {
	other := kubeletConf + "# other words\n"
	renamed := strings.ReplaceAll(kubeletConf, "pki/current.pem", "pki/rotated.pem")
	cases := map[string]struct {
		change func(t *testing.T, path string)
		again  bool
		want   string
	}{
		"nothing has changed": {change: func(*testing.T, string) {}},
		"it was written in place": {
			change: func(t *testing.T, path string) { write(t, path, renamed) }, again: true, want: "rotated.pem",
		},
		"another file took its place": {
			change: func(t *testing.T, path string) {
				write(t, path+".new", renamed)
				if err := os.Rename(path+".new", path); err != nil {
					t.Fatal(err)
				}
			}, again: true, want: "rotated.pem",
		},
		"it has other words and says the same": {
			change: func(t *testing.T, path string) { write(t, path, other) }, again: true, want: "current.pem",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hook, m := newHook(t), &made{}
			before, err := m.kubeconfigOf(hook)
			if err != nil {
				t.Fatal(err)
			}
			tc.change(t, hook.Kubeconfigs[1])
			after, err := m.kubeconfigOf(hook)
			if err != nil {
				t.Fatal(err)
			}
			if again := &before[0] != &after[0]; again != tc.again {
				t.Errorf("made anew: %v, want %v", again, tc.again)
			}
			if !strings.Contains(string(after), tc.want) {
				t.Errorf("%q is not in:\n%s", tc.want, after)
			}
		})
	}
	t.Run("it is gone, and that is an error", func(t *testing.T) {
		hook, m := newHook(t), &made{}
		if _, err := m.kubeconfigOf(hook); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(hook.Kubeconfigs[1]); err != nil {
			t.Fatal(err)
		}
		if _, err := m.kubeconfigOf(hook); err == nil {
			t.Error("no error")
		}
	})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
