package nodefiles

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// every is how often files are looked at: one stat each. A change is kept when two
	// looks in a row saw the same, so that no half-written file is.
	every = 2 * time.Second
	// goneFor is how long a file must be missing on the running node before its copy is
	// dropped. Daemons that are stopped with the node remove their files too; that must
	// not count.
	goneFor = time.Minute
)

// selinux is the extended attribute of a file's label.
const selinux = "security.selinux"

// Keeper keeps files and puts them back.
type Keeper struct {
	// Dir is where copies are.
	Dir string
	// Root is prepended to every path: / on a node.
	Root  string
	Clock clock.Clock
	// Changed is called when Problems gives something else.
	Changed func()

	// label is the extended attribute that is kept.
	label string
	// files that were looked at.
	files map[string]*look
	// tidied says that copies of an earlier run that are not wanted were removed.
	tidied bool

	mu       sync.Mutex
	problems map[string]string
}

// look is what was last seen of a file.
type look struct {
	seen, stored state
	missingSince time.Time
	present      bool
}

// New returns a keeper with copies in dir.
func New(dir, root string, c clock.Clock, changed func()) *Keeper {
	return &Keeper{Dir: dir, Root: root, Clock: c, Changed: changed, label: selinux, files: map[string]*look{}, problems: map[string]string{}}
}

// Restore puts back what is missing of files and returns what it has put. It is called once
// a boot, before the container runtime starts.
func (k *Keeper) Restore(ctx context.Context, files []string) []string {
	log := logr.FromContextOrDiscard(ctx)
	var put []string
	for _, file := range files[:min(len(files), maxFiles)] {
		done, err := k.restore(log, file)
		if err != nil {
			log.Error(err, "Node file cannot be put back", "file", file)
		}
		if done {
			put = append(put, file)
		}
		k.tell(file, err)
	}
	return put
}

func (k *Keeper) restore(log logr.Logger, file string) (bool, error) {
	root, names, err := split(file)
	if err != nil {
		return false, err
	}
	copied, ok, err := load(k.Dir, file)
	if !ok {
		return false, err
	}
	name := names[len(names)-1]
	dir, err := openFolder(k.Root, root, names[:len(names)-1], true)
	if err != nil {
		return false, err
	}
	defer dir.close()
	_, there, err := dir.stat(name)
	if err != nil {
		return false, err
	}
	if there {
		present, _, err := dir.read(name, k.label)
		if err != nil || !lost(copied, present) {
			return false, err
		}
	}
	labelErr, err := dir.put(name, k.label, copied, there)
	if errors.Is(err, fs.ErrExist) {
		return false, nil // its daemon was quicker
	}
	if err != nil {
		return false, err
	}
	if labelErr != nil {
		log.Error(labelErr, "Node file was put back without its SELinux label", "file", file)
	}
	return true, nil
}

// lost says whether a file that is there is what a power cut left of the copied one: it has
// the same time of modification and another content. Equality asks no clock which is newer.
func lost(copied, present kept) bool {
	return copied.Modified == present.Modified && !bytes.Equal(copied.Content, present.Content)
}

// Run keeps the files that wanted gives until ctx ends.
func (k *Keeper) Run(ctx context.Context, wanted func() []string) {
	for ctx.Err() == nil {
		k.pass(ctx, wanted())
		select {
		case <-ctx.Done():
		case <-k.Clock.After(every):
		}
	}
}

func (k *Keeper) pass(ctx context.Context, wanted []string) {
	log := logr.FromContextOrDiscard(ctx)
	wanted = wanted[:min(len(wanted), maxFiles)]
	if k.unwanted(wanted) {
		if err := forget(k.Dir, wanted); err != nil {
			log.Error(err, "Copies of node files that are not wanted any more stay")
		}
	}
	for _, file := range wanted {
		err := k.look(log, file)
		if errors.Is(err, errAbsent) {
			continue // why it could not be put back stays told
		}
		if k.tell(file, err) && err != nil {
			log.Error(err, "Node file is not kept", "file", file)
		}
	}
}

// unwanted drops what is not in wanted, and says whether there may be copies to remove.
func (k *Keeper) unwanted(wanted []string) bool {
	dropped := !k.tidied
	k.tidied = true
	maps.DeleteFunc(k.files, func(file string, _ *look) bool {
		gone := !slices.Contains(wanted, file)
		dropped = dropped || gone
		return gone
	})
	k.mu.Lock()
	maps.DeleteFunc(k.problems, func(file string, _ string) bool { return !slices.Contains(wanted, file) })
	k.mu.Unlock()
	return dropped
}

func (k *Keeper) look(log logr.Logger, file string) error {
	l := k.files[file]
	if l == nil {
		l = &look{}
		k.files[file] = l
	}
	root, names, err := split(file)
	if err != nil {
		return err
	}
	name := names[len(names)-1]
	dir, err := openFolder(k.Root, root, names[:len(names)-1], false)
	if errors.Is(err, fs.ErrNotExist) {
		return k.missing(log, file, l)
	}
	if err != nil {
		return err
	}
	defer dir.close()
	now, there, err := dir.stat(name)
	if err != nil {
		return err
	}
	if !there {
		return k.missing(log, file, l)
	}
	l.present, l.missingSince = true, time.Time{}
	if settled := now == l.seen; !settled || now == l.stored {
		l.seen = now
		return nil
	}
	present, read, err := dir.read(name, k.label)
	if errors.Is(err, errBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	present.Path = file
	if copied, ok, _ := load(k.Dir, file); !ok || !same(copied, present) {
		if err := store(k.Dir, present); err != nil {
			return err
		}
		log.Info("Node file is kept", "file", file, "bytes", len(present.Content))
	}
	l.stored, l.seen = read, read
	return nil
}

func same(a, b kept) bool {
	return a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID && a.Label == b.Label && a.Modified == b.Modified && bytes.Equal(a.Content, b.Content)
}

// errAbsent says that a file was not there since the agent runs.
var errAbsent = errors.New("it is not there")

// missing drops the copy of a file that was seen on this node and has been gone for long.
func (k *Keeper) missing(log logr.Logger, file string, l *look) error {
	if !l.present {
		return errAbsent
	}
	if l.missingSince.IsZero() {
		l.missingSince = k.Clock.Now()
	}
	if k.Clock.Since(l.missingSince) < goneFor {
		return nil
	}
	*l = look{}
	err := os.Remove(filepath.Join(k.Dir, fileName(file)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		log.Info("Node file was removed, its copy is dropped", "file", file)
	}
	return err
}

// tell notes why a file is not kept, and says whether that is news.
func (k *Keeper) tell(file string, err error) bool {
	said := ""
	if err != nil {
		said = err.Error()
	}
	k.mu.Lock()
	news := k.problems[file] != said
	if said == "" {
		delete(k.problems, file)
	} else {
		k.problems[file] = said
	}
	k.mu.Unlock()
	if news && k.Changed != nil {
		k.Changed()
	}
	return news
}

// Problems says of files why they are not kept or were not put back.
func (k *Keeper) Problems() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.problems)
}
