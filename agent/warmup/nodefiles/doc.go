// Package nodefiles keeps files that a restart loses and puts them back at the next boot,
// before the container runtime starts. A file that is there is never written over: it was
// made in this boot, or is newer than what was kept. The one exception is a file whose time
// of modification is the kept one's while its content is not: the power cut lost it.
package nodefiles

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Bounds of what is kept.
const (
	maxFiles = 16
	maxSize  = 64 << 10 // bytes of one file
)

// roots are the directories below which files are kept. They themselves may be reached by
// links, nothing below them is.
var roots = []string{"/run", "/etc/cni/net.d", "/var/lib/cni"}

// foreign is never kept: it belongs to daemons that make it anew, or is secret.
var foreign = []string{"/run/rekindle/", "/run/systemd/", "/run/containerd/", "/run/secrets/"}

// split gives a file's root and the names below it. The API server has checked the path
// already; the agent trusts nobody with the node's files.
func split(file string) (root string, names []string, err error) {
	if path.Clean(file) != file || slices.ContainsFunc(foreign, func(p string) bool { return strings.HasPrefix(file, p) }) {
		return "", nil, fmt.Errorf("%q may not be kept: want a plain path that is not of rekindle, systemd, containerd or secrets", file)
	}
	for _, root := range roots {
		if below, ok := strings.CutPrefix(file, root+"/"); ok {
			names := strings.Split(below, "/")
			if !slices.ContainsFunc(names, func(n string) bool { return n == "" || n[0] == '.' }) {
				return root, names, nil
			}
		}
	}
	return "", nil, fmt.Errorf("%q may not be kept: want a file below %s without hidden names", file, strings.Join(roots, ", "))
}
