package host

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// OwnsConnection says whether the process holds the end of a TCP connection over IPv4 that
// has the address local and whose other end has the address remote. For processes of others
// it needs root and CAP_SYS_PTRACE.
func (f Files) OwnsConnection(pid int, local, remote netip.AddrPort) (bool, error) {
	process := filepath.Join(f.Root, "proc", strconv.Itoa(pid))
	table, err := os.ReadFile(filepath.Join(process, "net/tcp"))
	if err != nil {
		return false, fmt.Errorf("reading the connections of process %d: %w", pid, err)
	}
	inode := inodeOf(string(table), local, remote)
	if inode == "" {
		return false, nil
	}
	files, err := os.ReadDir(filepath.Join(process, "fd"))
	if err != nil {
		return false, fmt.Errorf("reading the open files of process %d: %w", pid, err)
	}
	for _, file := range files {
		target, err := os.Readlink(filepath.Join(process, "fd", file.Name()))
		if errors.Is(err, fs.ErrPermission) {
			return false, fmt.Errorf("reading the open files of process %d: %w: it takes CAP_SYS_PTRACE", pid, err)
		}
		// One that was closed meanwhile is none.
		if err == nil && target == "socket:["+inode+"]" {
			return true, nil
		}
	}
	return false, nil
}

// inodeOf finds a connection's socket in the kernel's table, empty when it is not there.
func inodeOf(table string, local, remote netip.AddrPort) string {
	for line := range strings.Lines(table) {
		// sl, local and remote address, state, queues, timer, retransmits, uid, timeout, inode
		fields := strings.Fields(line)
		if len(fields) > 9 && fields[1] == kernelAddress(local) && fields[2] == kernelAddress(remote) {
			return fields[9]
		}
	}
	return ""
}

// kernelAddress writes an IPv4 address as /proc/net/tcp does: its bytes as a number of the
// machine's byte order.
func kernelAddress(a netip.AddrPort) string {
	if !a.Addr().Unmap().Is4() {
		return ""
	}
	bytes := a.Addr().Unmap().As4()
	number := make([]byte, 4)
	binary.BigEndian.PutUint32(number, binary.NativeEndian.Uint32(bytes[:]))
	return fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString(number)), a.Port())
}
