package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	version = "v1.2.3"
	cases := map[string]struct {
		args       []string
		want       int
		wantStdout string
		wantStderr string
	}{
		"no command says how":                       {want: 2, wantStderr: "Usage:"},
		"an unknown command is named":               {args: []string{"reinstall"}, want: 2, wantStderr: `unknown command "reinstall"`},
		"help":                                      {args: []string{"--help"}, wantStdout: "Usage:"},
		"version is that of the build":              {args: []string{"version"}, wantStdout: "v1.2.3\n"},
		"an unknown flag is named":                  {args: []string{"run", "--kubeconfig=x"}, want: 2, wantStderr: "kubeconfig"},
		"run takes no arguments that it would drop": {args: []string{"run", "now"}, want: 2, wantStderr: `"now"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			got := command(tc.args, &stdout, &stderr)
			if got != tc.want || !strings.HasPrefix(stdout.String(), tc.wantStdout) || !strings.Contains(stderr.String(), tc.wantStderr) {
				t.Errorf("got %d, %q, %q, want %d, %q, %q", got, stdout.String(), stderr.String(), tc.want, tc.wantStdout, tc.wantStderr)
			}
		})
	}
}
