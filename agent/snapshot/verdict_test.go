package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/agent/snapshot/vault"
)

func kubeletDir(t *testing.T, uids ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, uid := range uids {
		must(t, os.MkdirAll(filepath.Join(dir, "pods", uid), 0o750))
	}
	return dir
}

const (
	uidOld    = "11111111-0000-4000-8000-000000000001"
	uidNew    = "11111111-0000-4000-8000-000000000002"
	uidGone   = "11111111-0000-4000-8000-000000000003"
	uidMirror = "11111111-0000-4000-8000-000000000004"
	uidStatic = "0123456789abcdef0123456789abcdef"
)

// A pod with data on this node, created after the last seal; then the file is damaged.
func TestWhatHoldsAnOldList(t *testing.T) {
	podsKnown := []Sandbox{{UID: uidOld}, {UID: uidGone}, {UID: uidMirror + "-static"}}
	cases := map[string]struct {
		kubelet   []string
		sandboxes []Sandbox
		// want is a part of the reason; empty: the list is served.
		want string
	}{
		"nothing on the node":                          {},
		"pods of the list, a deleted one, static ones": {kubelet: []string{uidOld, uidGone, uidStatic, uidMirror + "-static"}, sandboxes: podsKnown},
		"a pod that only kubelet's directory knows":    {kubelet: []string{uidOld, uidNew}, want: uidNew},
		"a pod that only the runtime knows":            {kubelet: []string{uidOld}, sandboxes: []Sandbox{{UID: uidNew}}, want: uidNew},
		"a static pod with a UID of its own":           {sandboxes: []Sandbox{{UID: uidNew, Static: true}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store := mustOpen(t, dir)
			o := store.Objects()
			mirror := object("kube-system", "static", uidMirror, 9)
			mirror.Raw = []byte(`{"metadata":{"annotations":{"kubernetes.io/config.mirror":"` + uidMirror + `-static"}}}`)
			must(t, o.Sync(allPods, "10", []Object{object("a", "old", uidOld, 5), object("a", "gone", uidGone, 6), mirror}))
			must(t, o.Apply(allPods, Deleted, object("a", "gone", uidGone, 11)))
			must(t, store.Seal())
			must(t, o.Apply(allPods, Added, object("a", "new", uidNew, 12)))
			must(t, store.Close())
			must(t, os.WriteFile(filepath.Join(dir, durable.FileName), []byte("scrap"), 0o600))

			up := make(chan struct{})
			runtime := func(context.Context) ([]Sandbox, error) {
				select {
				case <-up:
					return tc.sandboxes, nil
				default:
					return nil, errors.New("not up yet")
				}
			}
			verdict := func(o *Objects) string {
				trusted, reason := o.Trusted()
				if trusted != (reason == "") {
					t.Errorf("trusted %v and reason %q", trusted, reason)
				}
				return reason
			}
			// Also after the next start the doubt is there.
			for range 2 {
				store, err := Open(dir, logr.Discard(), WithWitnesses(kubeletDir(t, tc.kubelet...), runtime))
				must(t, err)
				if got, want := verdict(store.Objects()), len(tc.kubelet) > 1 && tc.kubelet[1] == uidNew; (got != "") != want {
					t.Errorf("before the runtime answers: %q", got)
				}
				must(t, store.Close())
			}
			close(up)
			store, err := Open(dir, logr.Discard(), WithWitnesses(kubeletDir(t, tc.kubelet...), runtime))
			must(t, err)
			defer store.Close()
			o = store.Objects()
			for deadline := time.Now().Add(5 * time.Second); tc.want != "" && verdict(o) == "" && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if got := verdict(o); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("verdict %q, want %q", got, tc.want)
			}
			must(t, o.Sync(allPods, "20", []Object{object("a", "old", uidOld, 5), object("a", "new", uidNew, 12)}))
			if got := verdict(o); got != "" {
				t.Errorf("after a list of the API server's: %q", got)
			}
			must(t, store.Close())
			if got := verdict(mustOpen(t, dir).Objects()); got != "" {
				t.Errorf("after the next start: %q", got)
			}
		})
	}
}

func TestWithoutAListNothingIsServed(t *testing.T) {
	dir := t.TempDir()
	if trusted, reason := mustOpen(t, dir).Objects().Trusted(); trusted || reason == "" {
		t.Errorf("trusted %v, reason %q", trusted, reason)
	}
}

type sealer struct{ lost bool }

func (s sealer) Seal(_ context.Context, key []byte) ([]byte, error) { return key, nil }

func (s sealer) Unseal(_ context.Context, sealed []byte) ([]byte, error) {
	if s.lost {
		return nil, errors.New("the TPM was cleared")
	}
	return sealed, nil
}

var _ vault.Sealer = sealer{}

func TestSecretsOnTheDisk(t *testing.T) {
	const plain = "hunter2-hunter2"
	dir := t.TempDir()
	store, err := Open(dir, logr.Discard(), WithSealer(sealer{}))
	must(t, err)
	o := store.Objects()
	s := object("shop", "db", "s", 7)
	s.Raw = []byte(`{"data":"` + plain + `"}`)
	must(t, o.Sync(allPods, "5", []Object{object("shop", "a", uidOld, 5)}))
	must(t, o.Sync(secret("db"), "8", []Object{s}))
	key := TokenKey{PodUID: uidOld, Namespace: "shop", ServiceAccount: "default"}
	must(t, o.PutToken(key, Token{Token: plain}))
	_, err = o.PutOverlay(OverlayKey{Secrets, "shop", "db"}, []byte(plain))
	must(t, err)
	must(t, store.Seal())
	must(t, store.Close())

	files := 0
	must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), plain) {
			t.Errorf("%s has the secret in clear", path)
		}
		return err
	}))
	if files < 3 {
		t.Errorf("%d files, want the store, a sealed generation and the key", files)
	}

	check := func(when string, with Option, readable bool) {
		store, err := Open(dir, logr.Discard(), with)
		must(t, err)
		defer store.Close()
		o := store.Objects()
		got, known := o.Get(Secrets, "shop", "db")
		token, _ := o.Token(key)
		overlay, _ := o.Overlay(OverlayKey{Secrets, "shop", "db"})
		if known != readable || o.Known(secret("db")) != readable || readable != (string(got.Raw) == string(s.Raw)) ||
			readable != (token.Token == plain) || readable != (string(overlay) == plain) {
			t.Errorf("%s: secret %q, known %v, token %q, overlay %q", when, got.Raw, o.Known(secret("db")), token.Token, overlay)
		}
		if readable == (o.vault.Problem() != nil) {
			t.Errorf("%s: problem %v", when, o.vault.Problem())
		}
		if _, ok := o.Get(Pods, "shop", "a"); !ok {
			t.Errorf("%s: the pod is gone as well", when)
		}
	}
	check("on the same machine", WithSealer(sealer{}), true)
	check("on another machine", WithSealer(sealer{lost: true}), false)
}

func TestASoundFileCanHaveAnOldList(t *testing.T) {
	dir, root := t.TempDir(), kubeletDir(t, uidOld, uidGone)
	open := func() *Store {
		store, err := Open(dir, logr.Discard(), WithWitnesses(root, nil))
		must(t, err)
		return store
	}
	verdict := func() string {
		store := open()
		defer store.Close()
		_, reason := store.Objects().Trusted()
		return reason
	}
	store := open()
	must(t, store.Objects().Sync(allPods, "10", []Object{object("a", "old", uidOld, 5)}))
	must(t, store.Close())
	if got := verdict(); got != "" {
		t.Errorf("a folder that was left over before the agent came: %q", got)
	}
	// Kubelet has run without the agent.
	must(t, os.MkdirAll(filepath.Join(root, "pods", uidNew), 0o750))
	if got := verdict(); !strings.Contains(got, uidNew) {
		t.Errorf("a pod that the agent has not seen: %q, want %s", got, uidNew)
	}
	store = open()
	// The list is a moment older than what kubelet knows.
	must(t, store.Objects().Sync(allPods, "20", []Object{object("a", "old", uidOld, 5)}))
	must(t, store.Objects().Apply(allPods, Added, object("a", "new", uidNew, 21)))
	store.Objects().mu.RLock()
	if _, buried := store.Objects().state.tombstones[uidNew]; buried {
		t.Error("a pod that lives has a tombstone")
	}
	store.Objects().mu.RUnlock()
	must(t, store.Close())
	if got := verdict(); got != "" {
		t.Errorf("after a list of the API server's: %q", got)
	}
}

func TestAKubeletDirectoryThatCannotBeRead(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	store := mustOpen(t, dir)
	must(t, store.Objects().Sync(allPods, "10", nil))
	must(t, store.Close())
	must(t, os.WriteFile(filepath.Join(root, "pods"), nil, 0o600))
	store, err := Open(dir, logr.Discard(), WithWitnesses(root, nil))
	must(t, err)
	defer store.Close()
	if trusted, reason := store.Objects().Trusted(); trusted || !strings.Contains(reason, "not a directory") {
		t.Errorf("trusted %v, reason %q", trusted, reason)
	}
}
