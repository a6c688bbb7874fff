package images

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

const (
	// every is how often the runtime is asked what it has, without another reason.
	every = 30 * time.Second
	// calm is the shortest pause between two looks: statuses of pods change all the time.
	calm = time.Second
	// unsettled is the pause between looks during a recovery.
	unsettled = 5 * time.Second
	// recoveryFirst bounds how long a recovery keeps pulls and full checks waiting.
	recoveryFirst = 2 * time.Minute
	// silence is how long the runtime may be silent before it is told: it starts later than
	// the agent.
	silence = 30 * time.Second
	// maxProblems and maxImage are bounds of the status.
	maxProblems, maxImage = 10, 256
)

// backend is the container runtime.
type backend interface {
	stock(ctx context.Context) (stock, error)
	pull(ctx context.Context, reference string, auth *runtimeapi.AuthConfig) error
	tag(ctx context.Context, from, to string) error
	remove(ctx context.Context, reference string) error
	own(ctx context.Context, name string) error
	pin(ctx context.Context, name string, on bool) error
	inspect(ctx context.Context, target, id string) error
	check(ctx context.Context, target, id string, skip func(string) bool, sound func(string)) (outcome, error)
	renew(ctx context.Context, target, id string, pull func() error) error
	sync(ctx context.Context, target, id string) error
	layers(ctx context.Context, target, id string) ([]string, error)
}

// objects is the snapshot.
type objects interface {
	Get(resource schema.GroupVersionResource, namespace, name string) (snapshot.Object, bool)
	List(resource schema.GroupVersionResource) ([]snapshot.Object, uint64)
	Subscribe(f func(snapshot.Event)) (cancel func())
	// Trusted says whether the list of pods is known to be whole.
	Trusted() (bool, string)
}

// Options of a keeper.
type Options struct {
	// Containerd is the connection to it.
	Containerd grpc.ClientConnInterface
	// StateFile is where the keeper remembers what was checked.
	StateFile string
	// BootID of this boot; Unclean: the one before did not end in an orderly way.
	BootID  string
	Unclean bool
	// Objects is the snapshot.
	Objects objects
	// Spec is the policy's part now; nil: none applies.
	Spec func() *v1alpha1.NodeRecoverySpec
	// Recovered is closed when the recovery is over.
	Recovered <-chan struct{}
	// Changed is called when Report gives something else.
	Changed func()
	// Settled is called once when the recovery is over and the images are known, with the
	// directories of their layers, the most important first; nil: nobody asks.
	Settled func(ctx context.Context, layers []string)
}

// Keeper keeps the images. One goroutine, Run's, does the work.
type Keeper struct {
	Options
	runtime backend
	clock   clock.Clock
	log     logr.Logger
	state   *state
	pods    map[string]decoded

	patience     patience
	failed       map[string]string
	missingSince map[string]time.Time
	// looked at are images that were inspected in this boot; synced are on the disk.
	inspected, synced map[string]bool
	silentSince       time.Time
	// pulling says that one is under way; pulls has room for how it ends.
	pulling bool
	pulls   chan pulled
	// start runs a function beside the others.
	start func(func())
	// settled says that Settled was called.
	settled bool

	wake chan struct{}

	mu     sync.Mutex
	online bool // since the last pass
	// suspects are images, by id, of which a part was seen to be lost.
	suspects map[string]bool
	report   Report
}

// Report is what the status says of images.
type Report struct {
	// Status is nil until the runtime was asked.
	Status *v1alpha1.ImagesStatus
	// Warm is the condition ImagesWarm without times.
	Warm metav1.Condition
}

type decoded struct {
	version string
	pod     *corev1.Pod
}

// New returns a keeper that does nothing before Run.
func New(options Options) *Keeper {
	return &Keeper{
		Options: options, clock: clock.RealClock{}, pods: map[string]decoded{},
		patience: patience{}, failed: map[string]string{}, missingSince: map[string]time.Time{},
		inspected: map[string]bool{}, synced: map[string]bool{}, suspects: map[string]bool{}, wake: make(chan struct{}, 1),
		pulls: make(chan pulled, 1), start: func(f func()) { go f() },
		report: Report{Warm: condition(metav1.ConditionUnknown, v1alpha1.ReasonNotEvaluated, "Images were not looked at yet.")},
	}
}

// Report gives the present state. It asks nobody.
func (k *Keeper) Report() Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.report
}

// Wake has the keeper look soon. Online: the network has come back, registries that did not
// answer may be asked at once.
func (k *Keeper) Wake(online bool) {
	k.mu.Lock()
	k.online = k.online || online
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Suspect has an image, by id, compared with its blobs and mended soon: a part of it was
// seen to be lost.
func (k *Keeper) Suspect(id string) {
	k.mu.Lock()
	k.suspects[id] = true
	k.mu.Unlock()
	k.Wake(false)
}

// suspected says whether an image is to be compared at once; cleared: that is done.
func (k *Keeper) suspected(id string, cleared bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	is := k.suspects[id]
	if cleared {
		delete(k.suspects, id)
	}
	return is
}

// Run works until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	k.log = logr.FromContextOrDiscard(ctx)
	var err error
	if k.state, err = loadState(k.StateFile, k.BootID, k.Unclean); err != nil {
		k.log.Error(err, "What was known of images cannot be read, they are checked anew", "file", k.StateFile)
	}
	if k.runtime == nil {
		k.runtime = &runtime{k.Containerd}
	}
	defer k.Objects.Subscribe(func(e snapshot.Event) {
		if e.Resource == snapshot.Pods || e.Resource == snapshot.Secrets {
			// A new secret may open what was refused.
			k.Wake(e.Resource == snapshot.Secrets)
		}
	})()
	recovered, patience := k.Recovered, k.clock.After(recoveryFirst)
	settled := false
	for ctx.Err() == nil {
		again := every
		if did, next := k.pass(ctx, settled); did {
			again = 0
		} else if next > 0 {
			again = min(again, next)
		}
		select {
		case <-ctx.Done():
			return
		case <-k.clock.After(max(again, calm)):
			continue
		case <-recovered:
			settled, recovered = true, nil
			continue
		case <-patience:
			settled = true
			continue
		case <-k.wake:
		}
		select {
		case <-ctx.Done():
		case <-k.clock.After(calm):
		}
	}
}
