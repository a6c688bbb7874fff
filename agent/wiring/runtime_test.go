package wiring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRuntimeMatches(t *testing.T) {
	const crio = "unix:///run/crio/crio.sock"
	tests := map[string]struct {
		args string
		// files by name; $DIR in args is where they are.
		files    map[string]string
		endpoint string
		want     string // part of the error
	}{
		"nothing names one, so it is kubelet's default": {},
		"a flag names the same":                         {args: "--container-runtime-endpoint=unix:///run/containerd/containerd.sock"},
		"a flag names it without a scheme":              {args: "--container-runtime-endpoint=/run/containerd/containerd.sock"},
		"a flag names it in a word of its own":          {args: "--container-runtime-endpoint " + crio, endpoint: crio},
		"a flag names another":                          {args: "--container-runtime-endpoint=" + crio, want: crio},
		"the last flag counts":                          {args: "--container-runtime-endpoint=/x --container-runtime-endpoint=" + crio, endpoint: crio},
		"the agent's own flag does not count":           {args: "--container-runtime-endpoint=" + crio + " --container-runtime-endpoint=unix:///run/rekindle/cri.sock", want: crio},
		"the agent's flag alone leaves kubelet's files": {
			args:  "--config=$DIR/c.yaml --container-runtime-endpoint=unix:///run/rekindle/cri.sock",
			files: map[string]string{"c.yaml": "containerRuntimeEndpoint: " + crio}, want: "c.yaml",
		},
		"the agent is configured for another": {endpoint: crio, want: "criEndpoint"},
		"a file names another":                {args: "--config=$DIR/c.yaml", files: map[string]string{"c.yaml": "containerRuntimeEndpoint: " + crio}, want: "c.yaml"},
		"a file names it":                     {args: "--config $DIR/c.yaml", files: map[string]string{"c.yaml": "containerRuntimeEndpoint: " + crio}, endpoint: crio},
		"a file names none":                   {args: "--config $DIR/c.yaml", files: map[string]string{"c.yaml": "kind: KubeletConfiguration"}},
		"a flag wins over a file":             {args: "--config=$DIR/c.yaml --container-runtime-endpoint=/run/containerd/containerd.sock", files: map[string]string{"c.yaml": "containerRuntimeEndpoint: " + crio}},
		"the last drop-in that names one wins": {
			args:     "--config=$DIR/c.yaml --config-dir=$DIR/d",
			files:    map[string]string{"c.yaml": "containerRuntimeEndpoint: /x", "d/1.conf": "containerRuntimeEndpoint: /y", "d/2.conf": "containerRuntimeEndpoint: " + crio, "d/3.conf": "", "d/4.txt": "containerRuntimeEndpoint: /z"},
			endpoint: crio,
		},
		"a file that is not there decides nothing": {args: "--config=$DIR/none.yaml"},
		"a directory of drop-ins may be missing":   {args: "--config-dir=$DIR/none"},
		"an image service of its own is no matter": {args: "--image-service-endpoint=" + crio},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := node(t, tc.files)
			if tc.endpoint == "" {
				tc.endpoint = runtimeDefault
			}
			err := (Hook{Dir: RunDir}).RuntimeMatches(append([]string{"kubelet"}, strings.Fields(strings.ReplaceAll(tc.args, "$DIR", dir))...), tc.endpoint)
			if (err != nil) != (tc.want != "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// As /var/run is one to /run.
func TestRuntimeMatchesThroughALink(t *testing.T) {
	dir := node(t, map[string]string{"run/c.sock": ""})
	if err := os.Symlink(filepath.Join(dir, "run"), filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	if err := (Hook{Dir: RunDir}).RuntimeMatches([]string{"kubelet", "--container-runtime-endpoint=unix://" + dir + "/other/c.sock"}, "unix://"+dir+"/run/c.sock"); err != nil {
		t.Error(err)
	}
}
