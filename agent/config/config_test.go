package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoad(t *testing.T) {
	with := func(change func(*Config)) Config {
		c := Default()
		change(&c)
		return c
	}
	cases := map[string]struct {
		file    *string
		asked   bool
		want    Config
		wantErr []string
	}{
		"no file means the defaults":             {want: Default()},
		"a file that was asked for must exist":   {asked: true, wantErr: []string{"agent.yaml", "--config", DefaultPath}},
		"a field in another case does not exist": {file: text("nodename: edge-1\n"), wantErr: []string{"agent.yaml", `"nodename"`, "sample"}},
		"a value of another type":                {file: text("stateDir: 7\n"), wantErr: []string{"agent.yaml", "stateDir", "string"}},
		"an empty file means them as well":       {file: new(string), want: Default()},
		"what is set replaces its default": {
			file: text("nodeName: edge-1\ncriEndpoint: unix:///run/crio/crio.sock\nkubeconfig: /etc/kubelet.conf\n"),
			want: with(func(c *Config) {
				c.NodeName, c.CRIEndpoint, c.Kubeconfig = "edge-1", "unix:///run/crio/crio.sock", "/etc/kubelet.conf"
			}),
		},
		"a field that does not exist":       {file: text("criEndpont: x\n"), wantErr: []string{"agent.yaml", `"criEndpont"`, "sample"}},
		"a field that is there twice":       {file: text("nodeName: a\nnodeName: b\n"), wantErr: []string{"agent.yaml", "nodeName"}},
		"no YAML at all":                    {file: text("{"), wantErr: []string{"agent.yaml"}},
		"a node name that cannot be":        {file: text("nodeName: Edge_1\n"), wantErr: []string{"nodeName", "Edge_1", "leave it out"}},
		"a relative kubeconfig":             {file: text("kubeconfig: kubelet.conf\n"), wantErr: []string{"kubeconfig", "absolute"}},
		"a runtime that is not on a socket": {file: text("criEndpoint: tcp://127.0.0.1:99\n"), wantErr: []string{"criEndpoint", "unix://"}},
		"the root as state directory":       {file: text("stateDir: //\n"), wantErr: []string{"stateDir", "absolute"}},
		"an address of the network":         {file: text("linkLocalAddress: 10.0.0.1\n"), wantErr: []string{"linkLocalAddress", "169.254.0.0/16"}},
		"a relative root directory":         {file: text("kubeletRootDir: kubelet\n"), wantErr: []string{"kubeletRootDir", "absolute"}},
		"a health endpoint without scheme":  {file: text("kubeletHealthz: 127.0.0.1:10248\n"), wantErr: []string{"kubeletHealthz", "http URL"}},
		"a unit without its suffix":         {file: text("kubeletUnit: kubelet\n"), wantErr: []string{"kubeletUnit", "systemd service"}},
		"every wrong field is named": {
			file:    text("stateDir: here\ncontainerdUnit: containerd.socket\n"),
			wantErr: []string{"stateDir", "containerdUnit"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "agent.yaml")
			if tc.file != nil {
				if err := os.WriteFile(path, []byte(*tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := load(path, !tc.asked)
			if (err != nil) != (tc.wantErr != nil) {
				t.Fatalf("error %v, want one: %v", err, tc.wantErr != nil)
			}
			for _, part := range tc.wantErr {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not name %s", err, part)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyTheDefaultFileMayBeMissing(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "agnet.yaml")); err == nil {
		t.Error("a mistyped path means the defaults")
	}
}

// TestTheSampleIsTheDefaults: every line of the sample, uncommented, is a field with its
// default, and every field has one.
func TestTheSampleIsTheDefaults(t *testing.T) {
	sample, err := os.ReadFile("../../config/agent/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(sample)) {
		text, ok := strings.CutPrefix(line, "# ")
		if name, value, isField := strings.Cut(strings.TrimSpace(text), ": "); ok && isField && !strings.Contains(name, " ") {
			fields[name] = value
		}
	}
	var content strings.Builder
	for name, value := range fields {
		if name != "nodeName" && name != "kubeconfig" {
			content.WriteString(name + ": " + value + "\n")
		}
	}
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(content.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Errorf("the sample is not the defaults (-want +got):\n%s", diff)
	}
	if want := reflect.TypeFor[Config]().NumField(); len(fields) != want {
		t.Errorf("the sample has the fields %v, want all %d", fields, want)
	}
}

func text(s string) *string { return &s }
