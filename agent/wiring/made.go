package wiring

import (
	"os"
	"slices"
	"syscall"
)

// stamp tells one state of a file from another; zero: there is none.
type stamp struct {
	inode, size   int64
	wrote, change syscall.Timespec
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	return stamp{inode: int64(stat.Ino), size: info.Size(), wrote: stat.Mtim, change: stat.Ctim}
}

// made is the kubeconfig that was made of kubelet's own, and what that looked like then: it
// is looked at every other second, and hardly ever changes.
type made struct {
	of         []stamp
	kubeconfig []byte
}

// kubeconfigOf makes it anew when one of the files is another one.
func (m *made) kubeconfigOf(h Hook) ([]byte, error) {
	// Before they are read: one that changes meanwhile is read again the next time.
	now := make([]stamp, len(h.Kubeconfigs))
	for i, path := range h.Kubeconfigs {
		now[i] = stampOf(path)
	}
	if m.kubeconfig != nil && slices.Equal(now, m.of) {
		return m.kubeconfig, nil
	}
	kubeconfig, err := h.kubeconfig()
	if err != nil {
		return nil, err
	}
	m.of, m.kubeconfig = now, kubeconfig
	return kubeconfig, nil
}
