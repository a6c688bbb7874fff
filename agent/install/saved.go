package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rekindle.edge/agent/host"
)

// indexFile is written last and removed first: without it a directory holds nothing.
const indexFile = "index.json"

// formatVersion of the index. A version that is not known is refused, not guessed at.
const formatVersion = 1

// saved is what paths were before they were changed, in a directory of its own.
type saved struct {
	root, dir string
	index     index
}

type index struct {
	Version int     `json:"version"`
	Entries []entry `json:"entries"`
	// Made is the topmost directory that was made to keep this in. Unset: all were there.
	Made string `json:"made,omitempty"`
}

// entry is one path as it was.
type entry struct {
	Path string `json:"path"`
	// Image is the file in the directory with the content. Unset: there was no file, or Link.
	Image string `json:"image,omitempty"`
	// Link is the target, if it was a symbolic link.
	Link    string      `json:"link,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	UID     int         `json:"uid,omitempty"`
	GID     int         `json:"gid,omitempty"`
	ModTime time.Time   `json:"modTime,omitzero"`
	// NoParent is the topmost directory on the way that there was not either.
	NoParent string `json:"noParent,omitempty"`
}

func (e entry) existed() bool { return e.Image != "" || e.Link != "" }

// openSaved reads what was saved in dir, nil if nothing was.
func openSaved(root, dir string) (*saved, error) {
	data, err := os.ReadFile(filepath.Join(dir, indexFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &saved{root: root, dir: dir}
	if err := json.Unmarshal(data, &s.index); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, indexFile), err)
	}
	if s.index.Version != formatVersion {
		return nil, fmt.Errorf("%s has version %d, this agent knows %d: use the agent that wrote it", filepath.Join(dir, indexFile), s.index.Version, formatVersion)
	}
	return s, nil
}

// save keeps what the paths are now. It is on disk when save returns.
func save(root, dir string, paths []string) (*saved, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	s := &saved{root: root, dir: dir, index: index{Version: formatVersion, Made: missingParent("", filepath.Join(dir, indexFile))}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for i, path := range paths {
		e, err := s.keep(path, strconv.Itoa(i))
		if err != nil {
			return nil, fmt.Errorf("saving %s: %w", path, err)
		}
		s.index.Entries = append(s.index.Entries, e)
	}
	return s, s.writeIndex()
}

func (s *saved) writeIndex() error {
	data, err := json.MarshalIndent(s.index, "", "  ")
	if err != nil {
		return err
	}
	return host.WriteFile(filepath.Join(s.dir, indexFile), data, 0o600)
}

func (s *saved) keep(path, image string) (entry, error) {
	e := entry{Path: path}
	full := filepath.Join(s.root, path)
	info, err := os.Lstat(full)
	if errors.Is(err, fs.ErrNotExist) {
		e.NoParent = missingParent(s.root, path)
		return e, nil
	}
	if err != nil {
		return e, err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		e.UID, e.GID = int(owner.Uid), int(owner.Gid)
	}
	e.ModTime, e.Mode = info.ModTime(), info.Mode().Perm()
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		e.Link, err = os.Readlink(full)
		return e, err
	case !info.Mode().IsRegular():
		return e, errors.New("neither a file nor a symbolic link")
	}
	data, err := os.ReadFile(full)
	if err != nil {
		return e, err
	}
	e.Image = image
	return e, host.WriteFile(filepath.Join(s.dir, image), data, 0o600)
}

func missingParent(root, path string) string {
	missing := ""
	for dir := filepath.Dir(path); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(root, dir)); err == nil {
			break
		}
		missing = dir
	}
	return missing
}

// adopt takes over what other holds about paths that s does not know.
func (s *saved) adopt(other *saved) error {
	known := map[string]bool{}
	for _, e := range s.index.Entries {
		known[e.Path] = true
	}
	for _, e := range other.index.Entries {
		if known[e.Path] {
			continue
		}
		if e.Image != "" {
			data, err := os.ReadFile(filepath.Join(other.dir, e.Image))
			if err != nil {
				return err
			}
			e.Image = strconv.Itoa(len(s.index.Entries))
			if err := host.WriteFile(filepath.Join(s.dir, e.Image), data, 0o600); err != nil {
				return err
			}
		}
		s.index.Entries = append(s.index.Entries, e)
	}
	return s.writeIndex()
}

// restore makes the paths what they were. It can be repeated after an interruption.
func (s *saved) restore() error {
	var errs []error
	for _, e := range s.index.Entries {
		if err := s.put(e); err != nil {
			errs = append(errs, fmt.Errorf("restoring %s: %w", e.Path, err))
		}
	}
	// Directories after all files: several may have been made for one.
	for _, e := range s.index.Entries {
		if e.NoParent != "" {
			errs = append(errs, removeEmpty(filepath.Join(s.root, filepath.Dir(e.Path)), filepath.Join(s.root, e.NoParent)))
		}
	}
	return errors.Join(errs...)
}

func (s *saved) put(e entry) error {
	path := filepath.Join(s.root, e.Path)
	if !e.existed() {
		return remove(path)
	}
	if e.Link != "" {
		if target, err := os.Readlink(path); err == nil && target == e.Link {
			return nil
		}
		return errors.Join(remove(path), os.Symlink(e.Link, path))
	}
	data, err := os.ReadFile(filepath.Join(s.dir, e.Image))
	if err != nil {
		return err
	}
	same, err := file{mode: e.Mode, data: data}.isAt(path)
	if err != nil || same {
		return err
	}
	if err := host.WriteFile(path, data, e.Mode); err != nil {
		return err
	}
	return errors.Join(os.Lchown(path, e.UID, e.GID), os.Chtimes(path, time.Time{}, e.ModTime))
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeEmpty removes dir and the directories above it up to top, as far as they are empty.
func removeEmpty(dir, top string) error {
	for {
		err := os.Remove(dir)
		switch {
		case errors.Is(err, syscall.ENOTEMPTY):
			return nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case dir == top || len(dir) < len(top):
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// absent is a node on which there was none of the paths, nor a directory named after the
// agent.
func absent(root, dir, made string, paths []string) *saved {
	s := &saved{root: root, dir: dir, index: index{Made: made}}
	for _, path := range paths {
		e := entry{Path: path}
		if dir := filepath.Dir(path); strings.HasPrefix(filepath.Base(dir), "rekindle") {
			e.NoParent = dir
		}
		s.index.Entries = append(s.index.Entries, e)
	}
	return s
}

// moveTo keeps what was saved in another directory.
func (s *saved) moveTo(dir string) error {
	if err := os.Rename(s.dir, dir); err != nil {
		return err
	}
	s.dir = dir
	return host.SyncDir(filepath.Dir(dir))
}

// discard forgets what was saved, and if all, also what is in directories that were made
// to keep it.
func (s *saved) discard(all bool) error {
	if all && s.index.Made != "" {
		return os.RemoveAll(s.index.Made)
	}
	if err := remove(filepath.Join(s.dir, indexFile)); err != nil {
		return err
	}
	parent := filepath.Dir(s.dir)
	return errors.Join(os.RemoveAll(s.dir), removeEmpty(parent, parent))
}
