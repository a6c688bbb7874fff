package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestAfterCallsOnceWhenAllHaveCalled(t *testing.T) {
	calls := 0
	f := after(2, func() { calls++ })
	for want := range []int{0, 1, 1} {
		f()
		if got := calls; got != min(want, 1) {
			t.Errorf("after %d calls it was called %d times", want+1, got)
		}
	}
}

func TestGenerateLeavesAUnitThatIsNotThere(t *testing.T) {
	tests := map[string]struct {
		args     []string
		wantCode int
		want     string
	}{
		"systemd gives a directory":     {[]string{"nothing-of-this-name.service", "containerd.service", t.TempDir()}, 1, "is left as it is"},
		"a person calls it without any": {nil, 2, "systemd runs this"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if got := generate(tc.args, &stderr); got != tc.wantCode {
				t.Errorf("exit code %d, want %d", got, tc.wantCode)
			}
			if !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("stderr %q has no %q", &stderr, tc.want)
			}
		})
	}
}
