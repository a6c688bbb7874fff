package readahead

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore tells of each page of a mapping whether it is in memory, in the lowest bit.
func mincore(memory, pages []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&memory[0])), uintptr(len(memory)), uintptr(unsafe.Pointer(&pages[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
