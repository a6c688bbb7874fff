package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"rekindle.edge/agent/host"
)

// learnTime is how long one pass may ask the runtime about images that are new to it: there
// may be a hundred of them.
const learnTime = 50 * time.Millisecond

// Looker says whether images are whole, cheaply enough to be asked every few seconds. What it
// learned of an image (documents, layers, program) is kept, and a file is read again only
// when its stat has changed. Files other than the program are compared by the keeper, after
// a power cut; what it found is in its state file.
type Looker struct {
	// StateFile is the keeper's.
	StateFile string
	// Suspect is told of the id of an image whose program is newly lost; nil: nobody.
	Suspect func(id string)

	runtime lookup
	known   map[string]*looked // by key
	files   map[string]file    // by path
	state   file
	damaged map[string]bool
	spent   time.Duration
}

// lookup is what is asked of the runtime.
type lookup interface {
	// target is the digest that a name in the runtime's store stands for; empty: not known.
	target(ctx context.Context, name string) (string, error)
	directories(ctx context.Context, chain string) ([]string, error)
}

// Asked is one use of an image.
type Asked struct {
	// Name of the image, and the digest of its configuration.
	Name, ID string
	// Program that is started instead of the image's own; empty: the image's.
	Program string
	// Volume: nothing is started of it.
	Volume bool
	// Blobs is the directory of the runtime's content.
	Blobs string
	// Overlay says that the runtime unpacks this image with overlayfs. Layers of others are
	// not looked at.
	Overlay bool
}

// key is of what is known of an image: elsewhere it may be unpacked as well.
func (a Asked) key() string {
	if a.Overlay {
		return a.ID
	}
	return a.ID + " elsewhere"
}

// looked is what was learned of an image.
type looked struct {
	// documents are paths of its manifests and configuration, with their digests.
	documents map[string]string
	// dirs are the directories of its layers, the topmost first; nil: not to be seen.
	dirs []string
	// own is the program of the image itself, search where names are looked for.
	own    string
	search []string
	// problem stands when the image could not be read.
	problem string
	// programs are where they lie, by name.
	programs map[string]string
	// asked for in this pass.
	asked bool
}

// file is what a file was like when it was last read, and what was wrong with it.
type file struct {
	stamp   stamp
	problem string
}

// stamp changes with a file's content; zero: it is not there.
type stamp struct {
	inode          uint64
	size           int64
	written, moved int64 // nanoseconds
}

// NewLooker returns a looker that asks containerd.
func NewLooker(containerd grpc.ClientConnInterface, stateFile string) *Looker {
	return &Looker{StateFile: stateFile, runtime: &runtime{containerd}}
}

// Begin begins a pass. What nobody asked for in the one before is forgotten. It is an error if
// the keeper's file cannot be read; what was known of it stays, and it is read again at the next.
func (l *Looker) Begin() error {
	l.spent = 0
	for id, known := range l.known {
		if !known.asked {
			delete(l.known, id)
			l.files = nil
		}
		known.asked = false
	}
	if l.known == nil {
		l.known = map[string]*looked{}
	}
	if l.files == nil {
		l.files = map[string]file{}
	}
	if stamp := stampOf(l.StateFile); stamp != l.state.stamp {
		var s state
		if _, err := host.LoadJSON(l.StateFile, &s); err != nil {
			return err
		}
		l.state.stamp, l.damaged = stamp, s.Damaged
	}
	return nil
}

// Look says what an image lacks that a start needs; empty: nothing that can be seen.
func (l *Looker) Look(ctx context.Context, asked Asked) string {
	if l.damaged[asked.ID] {
		return "files of a layer were lost, and could not be mended"
	}
	known, ok := l.known[asked.key()]
	if !ok {
		if known = l.learn(ctx, asked); known == nil {
			return ""
		}
		l.known[asked.key()] = known
	}
	problem := l.look(known, asked)
	if problem != "" && ok {
		// The image may have been pulled anew since, into other directories.
		if again := l.learn(ctx, asked); again != nil {
			l.known[asked.key()], known = again, again
			problem = l.look(known, asked)
		}
	}
	known.asked = true
	return problem
}

func (l *Looker) look(known *looked, asked Asked) string {
	if known.problem != "" {
		return known.problem
	}
	for path, digest := range known.documents {
		if problem := l.read(path, func() string { return document(path, digest) }); problem != "" {
			return problem
		}
	}
	for _, dir := range known.dirs {
		if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
			return "the directory of a layer is missing"
		}
	}
	return l.program(known, asked)
}

// read does what is given unless the file is as it was when that was last done.
func (l *Looker) read(path string, do func() string) string {
	stamp := stampOf(path)
	if f, ok := l.files[path]; ok && f.stamp == stamp {
		return f.problem
	}
	f := file{stamp: stamp, problem: do()}
	l.files[path] = f
	return f.problem
}

func stampOf(path string) stamp {
	var s unix.Stat_t
	if unix.Lstat(path, &s) != nil {
		return stamp{}
	}
	return stamp{s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()}
}

// document says what is wrong with a manifest or configuration.
func document(path, digest string) string {
	_, err := documentAt(path, digest)
	if err != nil {
		return "a manifest or configuration of it is missing or damaged, so that the runtime does not know the image after a restart"
	}
	return ""
}

func documentAt(path, digest string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if digestOf(data) != digest {
		return nil, fmt.Errorf("%w: %s", errContent, digest)
	}
	return data, nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// program says what is wrong with the program that a container starts.
func (l *Looker) program(known *looked, asked Asked) string {
	name := asked.Program
	if name == "" {
		name = known.own
	}
	if name == "" || known.dirs == nil || asked.Volume {
		return ""
	}
	at, ok := known.programs[name]
	if !ok {
		at = known.find(name)
		known.programs[name] = at
	}
	if at == "" {
		if path.IsAbs(name) && asked.Program == "" {
			return "its program " + name + " is not there"
		}
		return "" // perhaps in a volume
	}
	was := l.files[at].problem
	problem := l.read(at, func() string { return programAt(at, name) })
	if problem != "" && was == "" && l.Suspect != nil {
		l.Suspect(asked.ID)
	}
	return problem
}

// programAt finds what a power cut leaves of a file whose pages never reached the disk.
func programAt(at, name string) string {
	f, err := os.Open(at)
	if err != nil {
		return "its program " + name + " is not there"
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(f, head) // shorter is no fault
	if len(bytes.Trim(head[:n], "\x00")) == 0 {
		return "its program " + name + " is empty on the disk"
	}
	return ""
}

// find is where a program lies in the layers; empty: it is no regular file in any.
func (k *looked) find(name string) string {
	names := []string{name}
	switch {
	case path.IsAbs(name):
	case strings.Contains(name, "/"):
		return "" // below the working directory, which the pod may set
	default:
		names = nil
		for _, dir := range k.search {
			names = append(names, path.Join(dir, name))
		}
	}
	t, err := openTree(k.dirs)
	if err != nil {
		return ""
	}
	defer t.close()
	for _, name := range names {
		at := t.resolve(strings.TrimPrefix(name, "/"))
		for i, root := range t.roots {
			if info, err := root.Lstat(at); err == nil {
				if info.Mode().IsRegular() {
					return filepath.Join(k.dirs[i], at)
				}
				break
			}
		}
	}
	return ""
}

// learn reads an image's documents and asks where its layers are; nil: not now.
func (l *Looker) learn(ctx context.Context, asked Asked) *looked {
	if l.spent > learnTime || ctx.Err() != nil {
		return nil
	}
	began := time.Now()
	defer func() { l.spent += time.Since(began) }()
	target, err := l.runtime.target(ctx, normal(asked.Name))
	if err == nil && target == "" {
		target, err = l.runtime.target(ctx, asked.ID)
	}
	if err != nil || target == "" {
		return nil
	}
	known := &looked{documents: map[string]string{}, programs: map[string]string{}}
	config, err := known.describe(asked, target)
	if err != nil {
		known.problem = document("", "")
		return known
	}
	known.own, known.search = command(config)
	if len(config.RootFS.DiffIDs) == 0 || !asked.Overlay {
		return known
	}
	chains := chainIDs(config.RootFS.DiffIDs)
	known.dirs, err = l.runtime.directories(ctx, chains[len(chains)-1])
	switch {
	case errors.Is(err, errUnpacked):
		known.problem = "its layers are not unpacked, and the registry may be out of reach"
	case errors.Is(err, errUnchecked):
		known.dirs = nil
	case err != nil:
		return nil
	}
	return known
}

// describe notes the documents from the target down to the configuration, and reads that.
func (k *looked) describe(asked Asked, target string) (configuration, error) {
	var config configuration
	read := func(digest string, into any) error {
		algorithm, sum, _ := strings.Cut(digest, ":")
		at := filepath.Join(asked.Blobs, algorithm, sum)
		data, err := documentAt(at, digest)
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err == nil {
			k.documents[at] = digest
		}
		return err
	}
	var top manifest
	if err := read(target, &top); err != nil {
		return config, err
	}
	if top.Config.Digest != asked.ID {
		found := false
		for _, d := range top.Manifests {
			var m manifest
			before := len(k.documents)
			if read(d.Digest, &m) != nil {
				continue // of another platform
			}
			if found = m.Config.Digest == asked.ID; found {
				break
			}
			if len(k.documents) > before {
				algorithm, sum, _ := strings.Cut(d.Digest, ":")
				delete(k.documents, filepath.Join(asked.Blobs, algorithm, sum))
			}
		}
		if !found {
			return config, errContent
		}
	}
	return config, read(asked.ID, &config)
}

// command is what a container of an image runs, and where names of programs are looked for.
func command(config configuration) (string, []string) {
	search := []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
	for _, variable := range config.Config.Env {
		if dirs, ok := strings.CutPrefix(variable, "PATH="); ok {
			search = strings.Split(dirs, ":")
		}
	}
	line := slices.Concat(config.Config.Entrypoint, config.Config.Cmd)
	if len(line) == 0 {
		return "", search
	}
	return line[0], search
}

// target of a name in containerd's store.
func (r *runtime) target(ctx context.Context, name string) (string, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	image, err := imagesapi.NewImagesClient(r.connection).Get(ctx, &imagesapi.GetImageRequest{Name: name})
	if c := status.Code(err); c == codes.NotFound || c == codes.Unimplemented {
		return "", nil
	}
	return image.GetImage().GetTarget().GetDigest(), err
}
