// Package readahead brings the files of a recovery into the page cache before they are
// asked for: after a recovery it notes which parts of the images' files are in memory, and
// at the next boot it asks the kernel for them in the same order.
package readahead

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"rekindle.edge/agent/host"
)

// Bounds of what is looked at and noted.
const (
	maxFiles  = 20000
	maxRanges = 20000
	// gap is what is read ahead between two parts rather than asked for apart, in bytes.
	gap = 128 << 10
)

// Range is a part of a file, in bytes.
type Range struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
}

// Learn finds what is in memory of the regular files below directories, in their order,
// until the budget in bytes is used up. It follows no link. What cannot be read is left out.
func Learn(ctx context.Context, dirs []string, budget int64) []Range {
	var all []Range
	files := 0
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || ctx.Err() != nil || files == maxFiles || len(all) >= maxRanges || budget <= 0 {
				if err != nil && ctx.Err() == nil {
					return nil
				}
				return fs.SkipAll
			}
			if !entry.Type().IsRegular() {
				return nil
			}
			files++
			for _, r := range resident(path) {
				r.Length = min(r.Length, budget)
				budget -= r.Length
				if r.Length > 0 {
					all = append(all, r)
				}
			}
			return nil
		})
	}
	return all[:min(len(all), maxRanges)]
}

// resident are the parts of a file that are in memory.
func resident(path string) []Range {
	file, err := open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Munmap(memory) }()
	page := int64(os.Getpagesize())
	pages := make([]byte, (info.Size()+page-1)/page)
	if err := mincore(memory, pages); err != nil {
		return nil
	}
	return parts(path, pages, page, info.Size())
}

// parts joins pages that are in memory to ranges.
func parts(path string, pages []byte, page, size int64) []Range {
	var all []Range
	for i, p := range pages {
		if p&1 == 0 {
			continue
		}
		at := int64(i) * page
		end := min(at+page, size)
		if last := len(all) - 1; last >= 0 && at-(all[last].Offset+all[last].Length) <= gap {
			all[last].Length = end - all[last].Offset
			continue
		}
		all = append(all, Range{path, at, end - at})
	}
	return all
}

// Ahead asks the kernel for ranges, in their order, until the budget in bytes is used up. It
// returns how many bytes it has asked for. What is not there any more is left out.
func Ahead(ctx context.Context, ranges []Range, budget int64) int64 {
	var asked int64
	var file *os.File
	defer func() { _ = file.Close() }()
	path := ""
	for _, r := range ranges {
		if ctx.Err() != nil || asked >= budget {
			break
		}
		if r.Path != path {
			_ = file.Close()
			path = r.Path
			if file, _ = open(path); file == nil {
				continue
			}
		}
		if file == nil {
			continue
		}
		length := min(r.Length, budget-asked)
		if unix.Fadvise(int(file.Fd()), r.Offset, length, unix.FADV_WILLNEED) == nil {
			asked += length
		}
	}
	return asked
}

// open opens a file without a trace in its times.
func open(path string) (*os.File, error) {
	const flags = os.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK
	file, err := os.OpenFile(path, flags|unix.O_NOATIME, 0)
	if errors.Is(err, fs.ErrPermission) {
		file, err = os.OpenFile(path, flags, 0)
	}
	return file, err
}

// Save keeps ranges for the next boot, with a checksum.
func Save(path string, ranges []Range) error {
	data, err := json.Marshal(ranges)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	return host.WriteFile(path, append([]byte(hex.EncodeToString(sum[:])+"\n"), data...), 0o600)
}

// Load gives what was kept; none if there is none, or it is damaged.
func Load(path string) []Range {
	stored, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	sum, data, _ := strings.Cut(string(stored), "\n")
	want := sha256.Sum256([]byte(data))
	var ranges []Range
	if sum != hex.EncodeToString(want[:]) || json.Unmarshal([]byte(data), &ranges) != nil {
		return nil
	}
	return ranges
}
