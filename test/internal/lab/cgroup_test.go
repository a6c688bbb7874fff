package lab

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const startLimit = 5 * time.Second

func TestParseHierarchies(t *testing.T) {
	for name, tc := range map[string]struct {
		mountinfo string
		want      []Hierarchy
	}{
		"cgroup v2 alone": {
			"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			[]Hierarchy{{Mountpoint: "/sys/fs/cgroup"}},
		},
		"v1 with joint and named trees beside an empty v2": {
			"31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n" +
				"32 30 0:28 / /sys/fs/cgroup/systemd rw shared:6 - cgroup cgroup rw,xattr,release_agent=/x,name=systemd\n" +
				"33 30 0:29 / /sys/fs/cgroup/unified rw shared:7 - cgroup2 cgroup2 rw\n",
			[]Hierarchy{
				{"/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct"}, {"/sys/fs/cgroup/systemd", "none,name=systemd"}, {"/sys/fs/cgroup/unified", ""},
			},
		},
		"a second mount of the same tree is left out": {
			"31 30 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n40 30 0:27 / /elsewhere rw - cgroup cgroup rw,pids\n",
			[]Hierarchy{{"/sys/fs/cgroup/pids", "pids"}},
		},
		"other file systems": {"20 1 254:0 / / rw - ext4 /dev/vda rw\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parseHierarchies(tc.mountinfo)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
