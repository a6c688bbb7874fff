package torture

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/boot"
	"rekindle.edge/agent/snapshot"
)

// written is how many bytes this process has given to the kernel, and how many of them to
// disks.
func written(t *testing.T) (handed, disk int64) {
	t.Helper()
	content, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skipf("the kernel does not count what is written: %v", err)
	}
	for line := range strings.Lines(string(content)) {
		if _, err := fmt.Sscanf(line, "wchar: %d", &handed); err == nil {
			continue
		}
		_, _ = fmt.Sscanf(line, "write_bytes: %d", &disk)
	}
	return handed, disk
}

// An hour of a full node on which nothing happens, on a clock of the test's own: signs of
// life, collections found in step, kubelet's heartbeats, and tokens refreshed before 80 %
// of their hour.
func TestWhatAnIdleNodeWrites(t *testing.T) {
	cases := map[string]struct {
		tokens bool
		// most is what may be handed to the kernel in an hour.
		most int64
	}{
		// One page a minute; what else the process of the test writes is counted too.
		"nothing but signs of life": {most: 66 * 4096},
		"with tokens refreshed":     {tokens: true, most: 2 << 20},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				store, err := snapshot.Open(dir, logr.Discard())
				must(t, err)
				defer store.Close()
				o := store.Objects()
				fullNode(t, o)
				node := snapshot.Scope{Resource: snapshot.Nodes}
				heartbeat := func(version int) snapshot.Object {
					return snapshot.Object{Name: "edge", UID: "n", ResourceVersion: fmt.Sprint(version), Raw: fmt.Appendf(nil,
						`{"metadata":{"resourceVersion":"%d"},"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":"%d"}]}}`, version, version)}
				}
				must(t, o.Sync(node, "3000", []snapshot.Object{heartbeat(3000)}))
				must(t, store.PutAlive(boot.Alive{}))
				time.Sleep(5 * time.Minute) // the first generation is sealed
				handedBefore, diskBefore := written(t)
				for second := range 3600 {
					time.Sleep(time.Second)
					if second%10 == 0 {
						o.MarkInStep(snapshot.Pods, time.Now())
					}
					if second%60 == 0 {
						must(t, store.PutAlive(boot.Alive{Wall: time.Now()}))
					}
					if second%300 == 0 {
						must(t, o.Apply(node, snapshot.Modified, heartbeat(4000+second)))
					}
					if pod := second / 26; tc.tokens && second%26 == 0 { // 110 in 48 minutes
						uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", pod%110))
						must(t, o.PutToken(snapshot.TokenKey{PodUID: uid, Namespace: "shop"}, snapshot.Token{Token: strings.Repeat("u", 1100)}))
					}
				}
				handed, disk := written(t)
				t.Logf("an hour: %d KiB handed to the kernel, %d KiB to disks", (handed-handedBefore)>>10, (disk-diskBefore)>>10)
				if got := handed - handedBefore; got > tc.most {
					t.Errorf("%d bytes, more than %d", got, tc.most)
				}
			})
		})
	}
}
