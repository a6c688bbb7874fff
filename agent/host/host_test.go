package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func tree(t *testing.T, files map[string]string) Files {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Files{Root: root}
}

const statRest = " S 1 4242 4242 0 -1 4194560 100 0 0 0 5 3 0 0 20 0 12 0 31415 1265311744 9000 18446744073709551615 1\n"

func TestProcessStart(t *testing.T) {
	cases := map[string]struct {
		stat    string
		want    time.Duration
		wantErr bool
	}{
		"a plain command":              {stat: "4242 (kubelet)" + statRest, want: 314150 * time.Millisecond},
		"a command with a parenthesis": {stat: "4242 (a) b (c)" + statRest, want: 314150 * time.Millisecond},
		"a line that is cut short":     {stat: "4242 (kubelet) S 1 2", wantErr: true},
		"no command":                   {stat: "4242", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tree(t, map[string]string{"proc/4242/stat": tc.stat}).ProcessStart(4242)
			if (err != nil) != tc.wantErr || got != tc.want {
				t.Errorf("got %v, %v, want %v, error %v", got, err, tc.want, tc.wantErr)
			}
		})
	}
	if _, err := tree(t, nil).ProcessStart(1); err == nil {
		t.Error("a process that is gone has a start time")
	}
}

func TestOwnStartLiesBeforeNow(t *testing.T) {
	files := Files{Root: "/"}
	start, err := files.ProcessStart(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if now := (SystemClock{}).Boot(); start > now || now-start > time.Hour {
		t.Errorf("this process started at %v, and now is %v: the two clocks differ", start, now)
	}
	if id, err := files.BootID(); err != nil || len(id) != 36 {
		t.Errorf("boot id %q, %v", id, err)
	}
}

func TestBootID(t *testing.T) {
	const path = "proc/sys/kernel/random/boot_id"
	got, err := tree(t, map[string]string{path: "d3a4f3a0-3767-4022-bbfe-ad2645b3a44c\n"}).BootID()
	if got != "d3a4f3a0-3767-4022-bbfe-ad2645b3a44c" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for name, files := range map[string]Files{"an empty file": tree(t, map[string]string{path: "\n"}), "no file": tree(t, nil)} {
		if got, err := files.BootID(); err == nil {
			t.Errorf("%s gives boot id %q", name, got)
		}
	}
}

func TestFindProcess(t *testing.T) {
	files := tree(t, map[string]string{
		"proc/30/comm": "kubelet\n", "proc/7/comm": "init\n", "proc/200/comm": "kubelet\n", "proc/self/comm": "kubelet\n", "proc/5/stat": "",
	})
	for command, want := range map[string]int{"kubelet": 30, "containerd": 0} {
		if got, err := files.FindProcess(command); got != want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", command, got, err, want)
		}
	}
	if got, err := files.Command(7); got != "init" || err != nil {
		t.Errorf("command of process 7: got %q, %v", got, err)
	}
	if got, err := files.Command(8); err == nil {
		t.Errorf("a process that is gone has the command %q", got)
	}
}
