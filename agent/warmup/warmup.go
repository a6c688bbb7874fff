// Package warmup keeps on the node what a restart needs beside the API: node files that a
// boot loses, the images of the node's pods, and on request what a recovery reads of them in
// the page cache.
package warmup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/warmup/images"
	"rekindle.edge/agent/warmup/nodefiles"
	"rekindle.edge/agent/warmup/readahead"
	"rekindle.edge/api/v1alpha1"
)

const (
	// filesDir is below the state directory.
	filesDir = "nodefiles"
	// readFile is there too, and readMark in the run directory once it was read in this boot.
	readFile, readMark = "readahead.json", "read-ahead"
	// defaultPageCache is what is read ahead at most, in bytes, without another word.
	defaultPageCache = 512 << 20
	// restoredFile is there once node files were put back in this boot: one that somebody
	// removes later must not come back with a restart of the agent.
	restoredFile = "nodefiles-restored"
)

// Options are where the node has what.
type Options struct {
	// StateDir survives a restart, RunDir does not.
	StateDir, RunDir string
	// Root of the node's files.
	Root string
	// Containerd is the connection to it.
	Containerd grpc.ClientConnInterface
}

// Boot is what the agent knows of this boot when it begins.
type Boot struct {
	ID string
	// Unclean says that the boot before did not end in an orderly way, as far as is known.
	Unclean bool
	// Spec that applied before the restart; nil: none.
	Spec *snapshot.Spec
	// Objects of the snapshot.
	Objects *snapshot.Objects
	// Recovered is closed when the recovery is over.
	Recovered <-chan struct{}
	// Changed is called, without waiting, when Findings or Images give something else.
	Changed func()
}

// Warmup is the running part.
type Warmup struct {
	options Options
	files   *nodefiles.Keeper

	mu sync.Mutex
	// images is nil before Begin.
	images *images.Keeper
	// spec is nil while no policy applies.
	spec    *v1alpha1.NodeRecoverySpec
	changed func()
}

// New returns a warm-up that does nothing yet.
func New(options Options) *Warmup {
	w := &Warmup{options: options, changed: func() {}}
	w.files = nodefiles.New(filepath.Join(options.StateDir, filesDir), options.Root, clock.RealClock{}, w.tell)
	return w
}

// Begin puts back what the boot has lost. It is called before containerd and kubelet start.
func (w *Warmup) Begin(ctx context.Context, b Boot) {
	log := logr.FromContextOrDiscard(ctx)
	keeper := images.New(images.Options{
		Containerd: w.options.Containerd, StateFile: images.StateFile(w.options.StateDir),
		BootID: b.ID, Unclean: b.Unclean, Objects: b.Objects, Spec: w.current, Recovered: b.Recovered, Changed: b.Changed,
		Settled: w.learn,
	})
	w.mu.Lock()
	w.changed, w.images = b.Changed, keeper
	w.mu.Unlock()
	w.Adopt(b.Spec)
	files := w.nodeFiles()
	if len(files) == 0 || b.Spec.Spec.Mode == v1alpha1.ModeObserve {
		return
	}
	mark := filepath.Join(w.options.RunDir, restoredFile)
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if put := w.files.Restore(ctx, files); len(put) > 0 {
		log.Info("Node files are put back", "files", put)
	}
	err := os.MkdirAll(w.options.RunDir, 0o700)
	if err == nil {
		err = os.WriteFile(mark, nil, 0o600)
	}
	if err != nil {
		log.Error(err, "Cannot note that node files were put back, a restart of the agent may put them back again")
	}
}

// Adopt takes a spec over; nil: no policy applies.
func (w *Warmup) Adopt(spec *snapshot.Spec) {
	w.mu.Lock()
	w.spec = nil
	if spec != nil {
		w.spec = &spec.Spec
	}
	keeper := w.images
	w.mu.Unlock()
	if keeper != nil {
		keeper.Wake(false)
	}
}

// Online tells that the API server has begun to answer: registries may as well.
func (w *Warmup) Online() {
	w.mu.Lock()
	keeper := w.images
	w.mu.Unlock()
	keeper.Wake(true)
}

// Suspect tells that a part of an image, by id, was seen to be lost.
func (w *Warmup) Suspect(image string) {
	w.mu.Lock()
	keeper := w.images
	w.mu.Unlock()
	if keeper != nil {
		keeper.Suspect(image)
	}
}

// Images is what the status says of them.
func (w *Warmup) Images() images.Report {
	w.mu.Lock()
	keeper := w.images
	w.mu.Unlock()
	return keeper.Report()
}

func (w *Warmup) current() *v1alpha1.NodeRecoverySpec {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spec
}

// Run keeps everything warm until ctx ends. It is called after Begin.
func (w *Warmup) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { w.files.Run(ctx, w.nodeFiles) })
	running.Go(func() { w.images.Run(ctx) })
	running.Go(func() { w.readAhead(ctx) })
	running.Wait()
}

func (w *Warmup) nodeFiles() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spec == nil {
		return nil
	}
	return w.spec.Snapshot.NodeFiles
}

// pageCache is the budget for reading ahead, in bytes; 0: it is not wanted.
func (w *Warmup) pageCache() int64 {
	spec := w.current()
	if spec == nil || spec.Mode == v1alpha1.ModeObserve || spec.CacheWarmup.PageCache.Mode != v1alpha1.ToggleEnabled {
		return 0
	}
	if size := spec.CacheWarmup.PageCache.MaxSize; size != nil {
		return size.Value()
	}
	return defaultPageCache
}

// readAhead asks for what the last recovery has read, once a boot. Kubelet does not wait
// for it.
func (w *Warmup) readAhead(ctx context.Context) {
	budget := w.pageCache()
	mark := filepath.Join(w.options.RunDir, readMark)
	if _, err := os.Stat(mark); budget == 0 || !errors.Is(err, fs.ErrNotExist) {
		return
	}
	log := logr.FromContextOrDiscard(ctx)
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		log.Error(err, "Cannot note that files are read ahead, none are")
		return
	}
	if asked := readahead.Ahead(ctx, readahead.Load(filepath.Join(w.options.StateDir, readFile)), budget); asked > 0 {
		log.Info("Files of the last recovery are read ahead", "bytes", asked)
	}
}

// learn notes what the recovery has read of the layers.
func (w *Warmup) learn(ctx context.Context, layers []string) {
	budget := w.pageCache()
	if budget == 0 {
		return
	}
	log := logr.FromContextOrDiscard(ctx)
	ranges := readahead.Learn(ctx, layers, budget)
	if err := readahead.Save(filepath.Join(w.options.StateDir, readFile), ranges); err != nil {
		log.Error(err, "What the recovery has read cannot be kept, nothing new is read ahead at the next boot")
	}
}

// tell that Report gives something else.
func (w *Warmup) tell() {
	w.mu.Lock()
	changed := w.changed
	w.mu.Unlock()
	changed()
}

// Findings say which node files are not kept.
func (w *Warmup) Findings() []v1alpha1.Finding {
	problems := w.files.Problems()
	var findings []v1alpha1.Finding
	for _, file := range w.nodeFiles() {
		if why, ok := problems[file]; ok {
			findings = append(findings, v1alpha1.Finding{
				Reason: v1alpha1.ReasonNodeFileNotKept, Severity: v1alpha1.SeveritySlows, Object: "file/" + file,
				Message: "The file of the policy's snapshot.nodeFiles is not kept, or was not put back: " + why + ". Remove it from the policy, or what is in its way from the node.",
			})
		}
	}
	return slices.Clip(findings)
}
