package order

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"rekindle.edge/agent/localapi/collection"
)

// Resources that the order follows.
var (
	pods           = corev1.SchemeGroupVersion.WithResource("pods")
	services       = corev1.SchemeGroupVersion.WithResource("services")
	endpointSlices = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
)

// trustEvery is how often a list of pods that may not be served is looked at again.
const trustEvery = 200 * time.Millisecond

// Served is what the local API serves to kubelet.
type Served interface {
	// Served is a collection.
	Served(schema.GroupVersionResource) *collection.Collection
	// PodsServed says whether the list of pods is one that is served.
	PodsServed() bool
}

// Follow takes over what is served, until ctx ends or nothing is held any more.
func (h *Holder) Follow(ctx context.Context, from Served) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		for ctx.Err() == nil && !from.PodsServed() {
			sleep(ctx, trustEvery)
		}
		h.follow(ctx, from.Served(pods), h.takePods)
	}()
	go h.follow(ctx, from.Served(services), h.takeServices)
	go h.follow(ctx, from.Served(endpointSlices), h.takeSlices)
	<-ctx.Done()
}

// follow calls take with all of a collection, and then with each burst of changes.
func (h *Holder) follow(ctx context.Context, c *collection.Collection, take func(all bool, events []collection.Event)) {
	for ctx.Err() == nil && !h.isPassing() {
		items, _, cursor := c.ListAndWatch()
		events := make([]collection.Event, len(items))
		for i := range items {
			events[i] = collection.Event{Type: watch.Added, Item: items[i]}
		}
		take(true, events)
		for {
			changes, _, changed, err := cursor.Next()
			if err != nil {
				break // the line was broken: the list is taken anew
			}
			if len(changes) > 0 {
				take(false, changes)
			}
			if h.isPassing() {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// change is a pod, or that there is none of its name.
type change struct {
	name
	pod *pod
}

func (h *Holder) takePods(all bool, events []collection.Event) {
	changes := make([]change, 0, len(events))
	var whole []*pod
	for _, e := range events {
		n := name{e.Item.Namespace, e.Item.Name}
		if e.Type == watch.Deleted {
			changes = append(changes, change{name: n})
			continue
		}
		view, err := viewPod(e.Item.Raw)
		if err != nil {
			h.Log.Error(err, "Pod cannot be read, it starts as kubelet asks", "pod", n.String())
			continue
		}
		changes = append(changes, change{n, &view})
		whole = append(whole, &view)
	}
	h.do(func(time.Duration) {
		switch {
		case h.planner == nil:
		case all:
			h.planner.list(whole)
			h.decide()
		default:
			for _, c := range changes {
				if c.pod == nil {
					delete(h.planner.pods, c.name)
				} else {
					h.planner.put(c.pod)
				}
			}
		}
	})
}

func (h *Holder) takeServices(all bool, events []collection.Event) {
	take(h, all, events, viewService, func(p *planner) map[name]service { return p.services })
}

func (h *Holder) takeSlices(all bool, events []collection.Event) {
	take(h, all, events, viewSlice, func(p *planner) map[name][]endpoint { return p.slices })
}

// take reads objects into one of the planner's maps.
func take[T any](h *Holder, all bool, events []collection.Event, read func([]byte) (T, error), into func(*planner) map[name]T) {
	put, gone := map[name]T{}, map[name]bool{}
	for _, e := range events {
		n := name{e.Item.Namespace, e.Item.Name}
		view, err := read(e.Item.Raw)
		if e.Type == watch.Deleted || err != nil {
			delete(put, n)
			gone[n] = true
			continue
		}
		put[n] = view
		delete(gone, n)
	}
	h.do(func(time.Duration) {
		if h.planner == nil {
			return
		}
		kept := into(h.planner)
		if all {
			clear(kept)
		}
		maps.Copy(kept, put)
		for n := range gone {
			delete(kept, n)
		}
	})
}
