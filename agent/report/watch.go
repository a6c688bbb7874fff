package report

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"rekindle.edge/api/v1alpha1"
)

const (
	// linkRetry is the longest pause between attempts while the server does not answer.
	linkRetry = 2 * time.Second
	// refusedRetry is the pause when it answers, and refuses: the kind is not there, or
	// the node has no right. Thousands of nodes may be asking.
	refusedRetry = 10 * time.Second
)

// watcher knows one object of the API server. A list or watch that does not come about
// changes nothing of what is known: neither a cut link nor a missing kind is an absence.
type watcher struct {
	client rest.Interface
	name   string
	// changed has room for one signal.
	changed chan struct{}

	mu     sync.Mutex
	known  bool
	object *v1alpha1.NodeRecovery
}

func newWatcher(client rest.Interface, name string) *watcher {
	return &watcher{client: client, name: name, changed: make(chan struct{}, 1)}
}

// latest is the object as last seen, nil when it was seen to be absent. Known is false
// until the server has answered.
func (w *watcher) latest() (object *v1alpha1.NodeRecovery, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.object, w.known
}

func (w *watcher) run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	listWatch := cache.NewListWatchFromClient(w.client, resource, "", fields.OneTermEqualSelector(metav1.ObjectNameField, w.name))
	refused := ""
	list := listWatch.ListWithContextFunc
	listWatch.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		object, err := list(ctx, options)
		if err == nil && refused != "" {
			log.Info("NodeRecovery can be read", "node", w.name)
			refused = ""
		}
		return object, err
	}
	reflector := cache.NewReflectorWithOptions(listWatch, &v1alpha1.NodeRecovery{}, w, cache.ReflectorOptions{
		Name: resource, Backoff: &wait.Backoff{Duration: linkRetry / 4, Factor: 2, Jitter: 0.5, Steps: 10, Cap: linkRetry},
	})
	for ctx.Err() == nil {
		err := reflector.ListAndWatchWithContext(ctx)
		pause := linkRetry
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			pause = refusedRetry
			if refused != err.Error() {
				refused = err.Error()
				log.Error(err, "NodeRecovery cannot be read, trying again; is Rekindle installed in the cluster, with its RBAC for nodes?", "node", w.name)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

func (w *watcher) set(object *v1alpha1.NodeRecovery) {
	w.mu.Lock()
	w.known, w.object = true, object
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Add implements cache.ReflectorStore.
func (w *watcher) Add(object any) error {
	if recovery, ok := object.(*v1alpha1.NodeRecovery); ok && recovery.Name == w.name {
		w.set(recovery)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (w *watcher) Update(object any) error { return w.Add(object) }

// Delete implements cache.ReflectorStore.
func (w *watcher) Delete(object any) error {
	if recovery, ok := object.(*v1alpha1.NodeRecovery); ok && recovery.Name == w.name {
		w.set(nil)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (w *watcher) Replace(objects []any, _ string) error {
	for _, object := range objects {
		if recovery, ok := object.(*v1alpha1.NodeRecovery); ok && recovery.Name == w.name {
			w.set(recovery)
			return nil
		}
	}
	w.set(nil)
	return nil
}

// Resync implements cache.ReflectorStore.
func (w *watcher) Resync() error { return nil }
