package edgenode

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const kubeletLines = `Flag --node-ip has been deprecated
I1130 14:05:37.500001      63 flags.go:64] FLAG: --v="2"
I1130 14:05:41.812792      63 kubelet.go:2877] "SyncLoop (probe)" probe="readiness" status="not ready" pod="default/web-8"
I1130 14:05:41.814484      63 kubelet.go:2877] "SyncLoop (probe)" probe="readiness" status="ready" pod="default/web-8"
I1130 14:05:42.000000      63 kubelet.go:2877] "SyncLoop (probe)" probe="startup" status="ready" pod="default/web-9"
E1130 14:06:00.000002     163 server.go:1] "started again"
I1130 14:06:01.000000     163 kubelet.go:2877] "SyncLoop (probe)" probe="readiness" status="ready" pod="default/web-8"
I1130 14:06:02.000000     163 kubelet.go:2877] "SyncLoop (probe)" probe="readiness" status="ready" pod="half a li`

const containerdLines = `time="2026-11-30T14:05:40.100000000Z" level=info msg="RunPodSandbox for name:\"web-8\" uid:\"u8\" namespace:\"default\""
time="2026-11-30T14:05:41.195079271Z" level=info msg="RunPodSandbox for name:\"web-8\"  uid:\"u8\"  namespace:\"default\"  attempt:1 returns sandbox id \"24fb08\""
time="2026-11-30T14:05:41.200000000Z" level=error msg="RunPodSandbox for name:\"web-9\" uid:\"u9\" namespace:\"default\" failed, error" error="returns nothing"
time="2026-11-30T14:05:41.300000000Z" level=info msg="RunPodSandbox for name:\"web-9\" uid:\"u9\" namespace:\"other\" returns sandbox id \"05efcd\""
`

func TestWitnessReadsBothLogs(t *testing.T) {
	boot := &Boot{Logs: t.TempDir(), Zero: clockTime("14:05:37")}
	for name, content := range map[string]string{kubeletLog: kubeletLines, containerdLog: containerdLines} {
		if err := os.WriteFile(filepath.Join(boot.Logs, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := boot.Witness()
	if err != nil {
		t.Fatal(err)
	}
	want := &Witness{
		KubeletStarts: []time.Time{clockTime("14:05:37.500001"), clockTime("14:06:00.000002")},
		Ready:         map[string][]time.Time{"default/web-8": {clockTime("14:05:41.814484"), clockTime("14:06:01")}},
		Sandboxes: []Sandbox{
			{Pod: "default/web-8", UID: "u8", ID: "24fb08", Returned: clockTime("14:05:41.195079271")},
			{Pod: "other/web-9", UID: "u9", ID: "05efcd", Returned: clockTime("14:05:41.3")},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if ready, _ := got.FirstReady("default/web-8"); boot.Since(ready) != 4814484*time.Microsecond {
		t.Errorf("ready %s after kernel start", boot.Since(ready))
	}
	if _, ok := got.FirstReady("default/web-9"); ok {
		t.Error("a startup probe counts as readiness")
	}
}

func TestWitnessOfABootWithoutLogsYetIsEmpty(t *testing.T) {
	got, err := (&Boot{Logs: t.TempDir()}).Witness()
	if err != nil || len(got.KubeletStarts)+len(got.Ready)+len(got.Sandboxes) > 0 {
		t.Errorf("Witness() = %v, %v", got, err)
	}
}

func clockTime(clock string) time.Time {
	at, err := time.Parse("2006-01-02 15:04:05", "2026-11-30 "+clock)
	if err != nil {
		panic(err)
	}
	return at
}
