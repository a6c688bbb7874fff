package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Leftovers names what the machine still has of a lab: processes, mounts, loop
// devices, cgroups, network namespaces, links, files.
func Leftovers(ctx context.Context, number int, dir string) []string {
	var left []string
	if _, err := os.Stat(dir); err == nil {
		left = append(left, dir)
	}
	for _, h := range Hierarchies() {
		left = append(left, tree(filepath.Join(h.Mountpoint, cgroupName(number)))...)
	}
	mounts, _ := mountsBelow(dir)
	left = append(left, mounts...)
	for _, pattern := range []string{"/proc/[0-9]*/cmdline", "/sys/block/loop*/loop/backing_file"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if content, _ := os.ReadFile(file); strings.Contains(string(content), dir+"/") {
				left = append(left, file+": "+strings.ReplaceAll(string(content), "\x00", " "))
			}
		}
	}
	names, _ := Run(ctx, "ip", "netns", "list")
	for name := range strings.FieldsSeq(names) {
		if strings.HasPrefix(name, netnsPrefix(number)) {
			left = append(left, "network namespace "+name)
		}
	}
	if _, err := os.Stat("/sys/class/net/" + hostLink(number)); err == nil {
		left = append(left, fmt.Sprintf("link %s", hostLink(number)))
	}
	return left
}
