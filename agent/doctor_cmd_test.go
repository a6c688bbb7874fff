package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/yaml"

	"rekindle.edge/agent/doctor"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// storeOnly is a configuration of a node whose agent does not run and has a store.
func storeOnly(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	// An agent that runs on this machine is none of the test's.
	was := doctorSocket
	doctorSocket = filepath.Join(dir, "agent.sock")
	t.Cleanup(func() { doctorSocket = was })
	store, err := snapshot.Open(filepath.Join(dir, "state"), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "agent.yaml")
	text := "stateDir: " + dir + "/state\nkubeletRootDir: " + dir + "/kubelet\ncriEndpoint: unix://" + dir + "/cri.sock\nkubeconfig: " + dir + "/none\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDoctorWithoutAnAgentReadsTheStore(t *testing.T) {
	path := storeOnly(t)
	for _, format := range []string{"json", "yaml"} {
		var out, problems strings.Builder
		code := command([]string{"doctor", "-o", format, "--config", path}, &out, &problems)
		var report doctor.Report
		var err error
		if format == "json" {
			err = json.Unmarshal([]byte(out.String()), &report)
		} else {
			err = yaml.UnmarshalStrict([]byte(out.String()), &report)
		}
		if err != nil || code != 1 || report.Source != doctor.FromStore || report.Reason != v1alpha1.ReasonPodListNotServed {
			t.Errorf("%s: exit code %d, error %v, report %+v, %s", format, code, err, report, problems.String())
		}
	}
	var out strings.Builder
	if code := command([]string{"doctor", "--config", path}, &out, &out); code != 1 || !strings.Contains(out.String(), "would NOT come back") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
	left, err := filepath.Glob(filepath.Join(tempDir(), "rekindle-doctor-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

func TestDoctorThatCannotTell(t *testing.T) {
	path := storeOnly(t)
	for _, args := range [][]string{{"-o", "xml"}, {"more"}, {"--config", path + "x"}} {
		var out strings.Builder
		if code := command(append([]string{"doctor"}, args...), &out, &out); code != cannotTell || out.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, out.String())
		}
	}
}
