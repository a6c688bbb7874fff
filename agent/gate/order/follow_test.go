package order

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/localapi/collection"
)

// localAPI serves pods once they may be served.
type localAPI struct {
	*collection.Set
	trusted atomic.Bool
}

func (a *localAPI) Served(resource schema.GroupVersionResource) *collection.Collection {
	return a.Of(resource)
}
func (a *localAPI) PodsServed() bool { return a.trusted.Load() }

func (n *node) item(pod, version string) *collection.Item {
	e := n.events("", pod)[0].Item
	e.ResourceVersion = version
	return e
}

func TestFollow(t *testing.T) {
	serving := func(n *node) *localAPI {
		api := &localAPI{Set: collection.NewSet(func(resource schema.GroupVersionResource) ([]*collection.Item, uint64) {
			if resource != pods {
				return nil, 1
			}
			return []*collection.Item{n.item("one/a", "1"), n.item("two/b", "1"), n.item("two/c", "1")}, 1
		}, nil)}
		n.Begin(oneStage(60), nil, nil)
		go n.Follow(n.Context(), api)
		return api
	}
	t.Run("the list counts once it is served, and changes as they come", func(t *testing.T) {
		story(t, nil, func(n *node) {
			api := serving(n)
			time.Sleep(time.Second)
			api.trusted.Store(true)
			time.Sleep(time.Second)
			b, c := n.asks("two/b"), n.asks("two/c")
			api.Put(pods, true, n.item("two/c", "2"), 2)
			if err := c(); err == nil {
				n.Error("a pod was made that is deleted")
			}
			time.Sleep(time.Second)
			n.ContainerStarted("id-a")
			n.want(all(b), "b 4s")
		})
	})
	t.Run("a line that is broken is read anew", func(t *testing.T) {
		story(t, nil, func(n *node) {
			api := serving(n)
			api.trusted.Store(true)
			time.Sleep(time.Second)
			b := n.asks("two/b")
			api.Break(pods)
			synctest.Wait()
			api.Put(pods, true, n.item("one/a", "3"), 3)
			n.want(all(b), "b 1s")
		})
	})
	t.Run("a list that is not served holds nobody for long", func(t *testing.T) {
		story(t, nil, func(n *node) {
			serving(n)
			n.want(all(n.asks("two/b")), "b 3s")
		})
	})
}
