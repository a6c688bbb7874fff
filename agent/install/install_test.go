package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rekindle.edge/agent/config"
)

// fakeNode is a node on which kubelet is wired when it starts after the agent.
type fakeNode struct {
	root string
	// unsuited, broken units and a kubelet that does not come back are what can go wrong.
	unsuited, broken error
	sick             bool
	// observes says that the policy has the agent leave kubelet alone.
	observes bool
	fails    string // the systemctl command that fails

	commands []string
	hooked   bool
	kubelet  Kubelet
}

func (f *fakeNode) Suits(context.Context) error             { return f.unsuited }
func (f *fakeNode) Verify(context.Context, ...string) error { return f.broken }
func (f *fakeNode) Unhook() error                           { f.hooked = false; return nil }

func (f *fakeNode) Systemctl(_ context.Context, args ...string) error {
	command := strings.Join(args, " ")
	if args[0] == "is-active" {
		if f.hooked {
			return nil
		}
		return errors.New("inactive")
	}
	f.commands = append(f.commands, command)
	if command == f.fails {
		return errors.New("no")
	}
	switch command {
	case "restart rekindle-agent.service":
		f.hooked = true
		f.kubelet.Hooked, f.kubelet.Left = !f.observes, f.observes
	case "restart kubelet.service", "try-restart kubelet.service":
		f.kubelet.Wired = f.hooked && !f.observes
		f.kubelet.Healthy = !f.hooked || !f.sick
		f.kubelet.Lease += "+"
	}
	return nil
}

func (f *fakeNode) Kubelet(context.Context) Kubelet {
	if f.kubelet.Running && f.kubelet.Lease != "" && f.kubelet.Healthy {
		f.kubelet.Lease += "+" // renewed all the time
	}
	return f.kubelet
}

func newFakeNode(t *testing.T) *fakeNode {
	t.Helper()
	f := &fakeNode{root: t.TempDir(), kubelet: Kubelet{Running: true, Healthy: true, Lease: "1"}}
	makeFile(t, filepath.Join(f.root, unitDir, "kubelet.service"), "[Service]\nExecStart=/usr/bin/kubelet\n", 0o644)
	makeFile(t, filepath.Join(f.root, "usr/local/bin/theirs"), "#!", 0o755)
	makeFile(t, filepath.Join(f.root, "var/lib/other"), "", 0o644)
	return f
}

func (f *fakeNode) installer(t *testing.T, binary string) Installer {
	return Installer{
		Node: f, Root: f.root, Settings: config.Default(), Binary: []byte(binary), Patience: 100 * time.Millisecond,
		Say: func(format string, args ...any) { t.Logf(format, args...) },
	}
}

func TestInstallAndUninstallLeaveTheNodeAsItWas(t *testing.T) {
	f := newFakeNode(t)
	// The program may lie where it will be installed to.
	makeFile(t, filepath.Join(f.root, binaryPath), "one", 0o755)
	before := tree(t, f.root)
	for _, binary := range []string{"one", "two"} { // and an upgrade between
		if err := f.installer(t, binary).Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !f.kubelet.Wired {
			t.Error("kubelet is not wired")
		}
	}
	if err := f.installer(t, "two").Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, tree(t, f.root)); diff != "" {
		t.Errorf("the node is not what it was (-was +is):\n%s", diff)
	}
	if f.kubelet.Wired {
		t.Error("kubelet is still wired")
	}
}

func TestUninstallKeepsTheStoreOfAnAgentThatRanBefore(t *testing.T) {
	f := newFakeNode(t)
	makeFile(t, filepath.Join(f.root, "var/lib/rekindle/rekindle.db"), "records", 0o600)
	before := tree(t, f.root)
	if err := f.installer(t, "one").Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.installer(t, "one").Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, tree(t, f.root)); diff != "" {
		t.Error(diff)
	}
}

func TestInstallTwiceChangesNothing(t *testing.T) {
	f := newFakeNode(t)
	if err := f.installer(t, "one").Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := tree(t, f.root)
	f.commands = nil
	if err := f.installer(t, "one").Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, tree(t, f.root)); diff != "" || len(f.commands) > 0 {
		t.Errorf("commands %q, files:\n%s", f.commands, diff)
	}
}

func TestUpgradeDoesNotRestartKubelet(t *testing.T) {
	f := newFakeNode(t)
	if err := f.installer(t, "one").Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.commands = nil
	if err := f.installer(t, "two").Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"daemon-reload", "start rekindle-agent.socket", "restart rekindle-agent.service"}
	if diff := cmp.Diff(want, f.commands); diff != "" {
		t.Error(diff)
	}
}

func TestInstallThatFailsLeavesTheNodeAsItWas(t *testing.T) {
	tests := map[string]struct {
		wrong func(*fakeNode)
		// untouched: nothing may have been done to the running node either.
		untouched bool
		want      string
	}{
		"the node does not suit": {
			wrong:     func(f *fakeNode) { f.unsuited = errors.New("no systemd") },
			untouched: true,
			want:      "nothing was changed: no systemd",
		},
		"systemd finds fault with the units": {
			wrong: func(f *fakeNode) { f.broken = errors.New("bad unit") },
			want:  "bad unit",
		},
		"the agent does not start": {
			wrong: func(f *fakeNode) { f.fails = "restart rekindle-agent.service" },
			want:  "not installed",
		},
		"kubelet is not well with the agent": {
			wrong: func(f *fakeNode) { f.sick = true },
			want:  "kubelet is not healthy after",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFakeNode(t)
			tc.wrong(f)
			before := tree(t, f.root)
			err := f.installer(t, "one").Install(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if tc.untouched != (len(f.commands) == 0) {
				t.Errorf("commands %q", f.commands)
			}
			if f.kubelet.Wired || !f.kubelet.Healthy || f.hooked {
				t.Errorf("kubelet %+v, hooked %v", f.kubelet, f.hooked)
			}
			if diff := cmp.Diff(before, tree(t, f.root)); diff != "" {
				t.Errorf("the node is not what it was (-was +is):\n%s", diff)
			}
		})
	}
}

func TestUpgradeThatFailsGoesBackToTheOldVersion(t *testing.T) {
	f := newFakeNode(t)
	if err := f.installer(t, "one").Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := tree(t, f.root)
	f.broken = errors.New("bad unit")
	if err := f.installer(t, "two").Install(t.Context()); err == nil {
		t.Error("it did not fail")
	}
	if diff := cmp.Diff(before, tree(t, f.root)); diff != "" {
		t.Error(diff)
	}
	// Kubelet takes up what the old agent gives it.
	want := []string{"start rekindle-agent.socket", "restart rekindle-agent.service", "try-restart kubelet.service"}
	if diff := cmp.Diff(want, f.commands[len(f.commands)-3:]); diff != "" {
		t.Error(diff)
	}
}

// A policy that only observes has kubelet left alone, and that is no failure.
func TestInstallWhereThePolicyObserves(t *testing.T) {
	f := newFakeNode(t)
	f.observes = true
	if err := f.installer(t, "one").Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.kubelet.Wired || slices.Contains(f.commands, "restart kubelet.service") {
		t.Errorf("kubelet was touched: %q", f.commands)
	}
}

// Systemd opens no socket of a service that runs, and kubelet needs the new one.
func TestUpgradeToOtherSocketsOpensThem(t *testing.T) {
	f := newFakeNode(t)
	if err := f.installer(t, "one").Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	makeFile(t, filepath.Join(f.root, socketPath), "[Socket]\nListenStream=127.0.0.1:7443\n", 0o644)
	f.kubelet.Wired = false // it lacks an argument
	f.commands = nil
	if err := f.installer(t, "two").Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"daemon-reload", "stop rekindle-agent.socket rekindle-agent.service",
		"start rekindle-agent.socket", "restart rekindle-agent.service", "restart kubelet.service",
	}
	if diff := cmp.Diff(want, f.commands); diff != "" {
		t.Error(diff)
	}
}

// errCut stands for the power that is cut in the middle.
var errCut = errors.New("cut")

// cutNode loses its power at the n-th command.
type cutNode struct {
	*fakeNode
	left int
}

func (c *cutNode) Systemctl(ctx context.Context, args ...string) error {
	if c.left--; c.left < 0 {
		panic(errCut)
	}
	return c.fakeNode.Systemctl(ctx, args...)
}

func TestInterruptedRunIsRolledBackFirst(t *testing.T) {
	for _, what := range []string{"install", "uninstall"} {
		for n := range 8 {
			t.Run(fmt.Sprintf("%s cut at command %d", what, n), func(t *testing.T) {
				f := newFakeNode(t)
				before := tree(t, f.root)
				if what == "uninstall" {
					if err := f.installer(t, "one").Install(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				func() {
					defer func() {
						if r := recover(); r != nil && r != any(errCut) {
							panic(r)
						}
					}()
					i := f.installer(t, "one")
					i.Node = &cutNode{fakeNode: f, left: n}
					if what == "install" {
						_ = i.Install(t.Context())
					} else {
						_ = i.Uninstall(t.Context())
					}
				}()
				// A reboot: what is in /run is gone, kubelet starts as its unit says.
				if err := f.installer(t, "one").Install(t.Context()); err != nil {
					t.Fatal(err)
				}
				if !f.kubelet.Wired || !f.kubelet.Healthy {
					t.Errorf("%+v", f.kubelet)
				}
				if err := f.installer(t, "one").Uninstall(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, tree(t, f.root)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestUninstall(t *testing.T) {
	t.Run("where nothing is installed nothing changes", func(t *testing.T) {
		f := newFakeNode(t)
		before := tree(t, f.root)
		if err := f.installer(t, "one").Uninstall(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, tree(t, f.root)); diff != "" || len(f.commands) > 0 {
			t.Errorf("commands %q, files:\n%s", f.commands, diff)
		}
	})
	t.Run("whose state directory is lost takes all of the agent's files", func(t *testing.T) {
		f := newFakeNode(t)
		if err := f.installer(t, "one").Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(f.root, "var/lib/rekindle")); err != nil {
			t.Fatal(err)
		}
		if err := f.installer(t, "one").Uninstall(t.Context()); err != nil {
			t.Fatal(err)
		}
		for path, content := range tree(t, f.root) {
			if strings.Contains(path, "rekindle") {
				t.Errorf("left: %s %s", path, content)
			}
		}
	})
}

func TestWantedFilesNameTheNodesUnits(t *testing.T) {
	settings := config.Default()
	settings.KubeletUnit, settings.ContainerdUnit, settings.LinkLocalAddress = "kubelet-x.service", "cri.service", "169.254.1.1"
	files, err := wanted([]byte("b"), settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, word := range strings.FieldsFunc(string(f.data), func(r rune) bool { return strings.ContainsRune(" \n='\":;", r) }) {
			if slices.Contains([]string{"kubelet.service", "containerd.service", "169.254.77.43"}, word) {
				t.Errorf("%s has %s", f.path, word)
			}
		}
	}
	links := map[string]string{}
	for _, f := range files {
		if f.link != "" {
			links[f.path] = f.link
		}
	}
	want := map[string]string{
		"/etc/systemd/system/multi-user.target.wants/rekindle-agent.service": "/etc/systemd/system/rekindle-agent.service",
		"/etc/systemd/system/multi-user.target.wants/rekindle-early.service": "/etc/systemd/system/rekindle-early.service",
		"/etc/systemd/system/sockets.target.wants/rekindle-agent.socket":     "/etc/systemd/system/rekindle-agent.socket",
	}
	if diff := cmp.Diff(want, links); diff != "" {
		t.Error(diff)
	}
}

func TestRuntimeVersion(t *testing.T) {
	for text, want := range map[string]bool{
		"containerd v2.4.2": true, "containerd 2.0.0": true, "containerd v2.1.0-rc.1": true,
		"containerd 1.7.27": false, "cri-o 1.34.0": false, "containerd ": false,
	} {
		name, version, _ := strings.Cut(text, " ")
		if err := runtimeVersionSuits(name, version); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestKubeletMustBeAServiceOfSystemd(t *testing.T) {
	cases := map[string]struct {
		pid, found int
		findErr    error
		want       string
	}{
		"it runs as its service":                    {pid: 7, found: 7},
		"it does not run":                           {},
		"somebody else has started it":              {found: 9, want: "kubelet runs as process 9, and not as kubelet.service"},
		"processes cannot be listed, and it is off": {findErr: errors.New("no /proc"), want: "no /proc"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := Machine{
				Settings: config.Config{KubeletUnit: "kubelet.service"},
				Kubelets: func(command string) (int, error) {
					if command != "kubelet" {
						t.Errorf("looked for %q", command)
					}
					return tc.found, tc.findErr
				},
			}
			err := m.isTheService(tc.pid)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestOwnKubeconfig(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"the last one counts":              {[]string{"kubelet", "--kubeconfig=/a", "--kubeconfig=/b"}, "/b"},
		"the agent's is not kubelet's own": {[]string{"kubelet", "--kubeconfig=/a", "--kubeconfig=/run/rekindle/kubelet.kubeconfig"}, "/a"},
		"it may be two arguments":          {[]string{"kubelet", "--kubeconfig", "/a", "--v=2"}, "/a"},
		"there may be none":                {[]string{"kubelet", "--kubeconfig"}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ownKubeconfig(tc.args); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
