package overlay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/agent/localapi/rawobject"
	"rekindle.edge/agent/snapshot"
)

// Store keeps entries durably, and the objects they belong to.
type Store interface {
	PutOverlay(snapshot.OverlayKey, []byte) (version uint64, err error)
	DeleteOverlay(snapshot.OverlayKey) (version uint64, err error)
	Overlay(snapshot.OverlayKey) ([]byte, bool)
	Overlays() map[snapshot.OverlayKey][]byte
	Apply(snapshot.Scope, snapshot.EventType, snapshot.Object) error
	Get(resource schema.GroupVersionResource, namespace, name string) (snapshot.Object, bool)
}

// Ask sends a request to the API server as the node. A refusal is a *apierrors.StatusError;
// any other error says that there was no answer.
type Ask func(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error)

// Overlay is the entries of all objects.
type Overlay struct {
	Store  Store
	Ask    Ask
	Log    logr.Logger
	BootID string

	// handing is held while an entry is handed over, which takes as long as the link lets
	// it; writes do not wait for that.
	handing sync.Mutex
	// mu is held while an entry is exchanged.
	mu   sync.Mutex
	kick chan struct{}
}

// New returns the entries in a store.
func New(store Store, ask Ask, log logr.Logger, bootID string) *Overlay {
	return &Overlay{Store: store, Ask: ask, Log: log, BootID: bootID, kick: make(chan struct{}, 1)}
}

// Of is the entry of an object, if there is one and it is of that very object.
func (o *Overlay) Of(key snapshot.OverlayKey, uid types.UID) (Entry, bool) {
	raw, ok := o.Store.Overlay(key)
	if !ok {
		return Entry{}, false
	}
	var entry Entry
	if err := json.Unmarshal(raw, &entry); err != nil || entry.UID != uid {
		return Entry{}, false
	}
	return entry, true
}

// Write keeps the status of an object as it is now wanted, and returns the object as it is
// served from then on.
func (o *Overlay) Write(key snapshot.OverlayKey, object []byte) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	entry, err := EntryOf(object, o.BootID)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(entry)
	if err != nil {
		return nil, err
	}
	version, err := o.Store.PutOverlay(key, raw)
	if err != nil {
		return nil, fmt.Errorf("the status cannot be kept: %w", err)
	}
	select {
	case o.kick <- struct{}{}:
	default:
	}
	return With(object, entry.Status, strconv.FormatUint(version, 10))
}

// Pending are the objects with entries.
func (o *Overlay) Pending() []snapshot.OverlayKey {
	var keys []snapshot.OverlayKey
	for key := range o.Store.Overlays() {
		keys = append(keys, key)
	}
	return keys
}

// HandOver hands one entry over to the API server. An error says that it is still pending.
func (o *Overlay) HandOver(ctx context.Context, key snapshot.OverlayKey) error {
	o.handing.Lock()
	defer o.handing.Unlock()
	raw, ok := o.Store.Overlay(key)
	if !ok {
		return nil
	}
	log := o.Log.WithValues("resource", key.Resource.Resource, "namespace", key.Namespace, "name", key.Name)
	var entry Entry
	if err := json.Unmarshal(raw, &entry); err != nil {
		log.Error(err, "Status that was written on the node cannot be read, it is dropped")
		return o.settle(key, raw, nil)
	}
	path := pathOf(key)
	live, err := o.Ask(ctx, http.MethodGet, path, "", nil)
	// A node may not even ask for a pod that is gone. The mirror knows whether it is.
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && !o.held(key, entry.UID) {
		log.Info("Status that was written on the node is not handed over", "reason", "the object is gone")
		return o.settle(key, raw, nil)
	}
	if err != nil {
		return err
	}
	p, err := planHandover(key.Resource.Resource, live, entry)
	if err != nil {
		return err
	}
	if p.patch == nil {
		log.Info("Status that was written on the node is not handed over", "reason", p.why)
		return o.settle(key, raw, live)
	}
	written, err := o.Ask(ctx, http.MethodPatch, path+"/status", string(types.MergePatchType), p.patch)
	var refused *apierrors.StatusError
	switch {
	case err == nil && !taken(key.Resource.Resource, live, written, entry):
		return errNotTaken
	case err == nil:
		log.V(1).Info("Status that was written on the node is handed over")
		return o.settle(key, raw, written)
	case !errors.As(err, &refused) || !final(refused):
		return err // tried again, against what is live then
	}
	log.Error(err, "API server refuses the status that was written on the node, it is dropped")
	return o.settle(key, raw, live)
}

// final says whether a refusal will not change by itself. An API server that has just
// started knows neither which pods are whose nor who may do what.
func final(refused error) bool {
	return apierrors.IsInvalid(refused) || apierrors.IsBadRequest(refused) || apierrors.IsNotFound(refused) ||
		apierrors.IsMethodNotSupported(refused) || apierrors.IsGone(refused)
}

func (o *Overlay) held(key snapshot.OverlayKey, uid types.UID) bool {
	object, ok := o.Store.Get(key.Resource, key.Namespace, key.Name)
	return ok && object.UID == uid
}

// settle ends an entry, unless it was written anew meanwhile. The live object, if there is
// one, is taken over first: the mirror may hear of it later, and kubelet must not be served
// what was before meanwhile.
func (o *Overlay) settle(key snapshot.OverlayKey, handed, live []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now, ok := o.Store.Overlay(key); !ok || !bytes.Equal(now, handed) {
		return nil
	}
	if live != nil {
		object, err := objectOf(live)
		if err != nil {
			return err
		}
		scope := snapshot.Scope(key)
		// An error says that it is not on the disk yet, or that the object is not followed
		// any more: neither matters here.
		if err := o.Store.Apply(scope, snapshot.Modified, object); err != nil {
			o.Log.V(4).Info("Live object was not taken over", "reason", err.Error())
		}
	}
	_, err := o.Store.DeleteOverlay(key)
	return err
}

// Drop forgets an entry.
func (o *Overlay) Drop(key snapshot.OverlayKey) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.Store.DeleteOverlay(key)
	return err
}

func objectOf(raw []byte) (snapshot.Object, error) {
	f, err := rawobject.Decode(raw)
	if err != nil {
		return snapshot.Object{}, err
	}
	metadata := f.Part("metadata")
	delete(metadata, "managedFields")
	f["metadata"] = metadata.Encode()
	return snapshot.Object{
		Namespace: metadata.Text("namespace"), Name: metadata.Text("name"), UID: types.UID(metadata.Text("uid")),
		ResourceVersion: metadata.Text("resourceVersion"), Raw: f.Encode(),
	}, nil
}

func pathOf(key snapshot.OverlayKey) string {
	path := "/api/" + key.Resource.Version
	if key.Resource.Group != "" {
		path = "/apis/" + key.Resource.Group + "/" + key.Resource.Version
	}
	if key.Namespace != "" {
		path += "/namespaces/" + key.Namespace
	}
	return path + "/" + key.Resource.Resource + "/" + key.Name
}
