package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/agent/snapshot/durable"
)

// A list of pods that is not the newest is a partial list, and kubelet removes what a list
// lacks, with its data. A sound file can have such a list as well: the disk took no writes,
// or kubelet ran for a while without the agent. So kubelet's directory, which has one folder
// a pod, is asked at every start. A pod there that is neither in the list, nor static, nor
// known to be deleted holds the list until the API server has been heard. When the file is
// in doubt, the runtime's sandboxes are asked too. The doubt is in the store, so that a
// restart does not forget it.

const keyDoubt = "doubt"

// Sandbox is a pod as the container runtime knows it.
type Sandbox struct {
	UID string
	// Static says that the pod comes from a file on the node.
	Static bool
}

// Sandboxes lists what the container runtime has.
type Sandboxes func(context.Context) ([]Sandbox, error)

// verdict is what is known of a list that may be old.
type verdict struct {
	// doubt says why it may be old; empty: it is not.
	doubt string
	// strangers are pods that somebody knows and the list does not, and where.
	strangers map[string]string
}

// Trusted says whether the list of pods may be served, and if not, why.
func (o *Objects) Trusted() (bool, string) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	v := o.state.verdict
	switch {
	case !o.state.podsKnown() && v.doubt == "":
		return false, "no list of this node's pods was stored yet"
	case !o.state.podsKnown():
		return false, "no list of this node's pods is left: " + v.doubt
	case len(v.strangers) == 0:
		return true, ""
	}
	var found []string
	for uid, where := range v.strangers {
		found = append(found, uid+" in "+where)
	}
	slices.Sort(found)
	more := ""
	if len(found) > 3 {
		more = fmt.Sprintf(" and %d more", len(found)-3)
		found = found[:3]
	}
	why := ""
	if v.doubt != "" {
		why = " (" + v.doubt + ")"
	}
	return false, fmt.Sprintf("the list of pods is old%s: pods are on this node that it does not have (%s%s); it is held until the API server is heard", why, strings.Join(found, ", "), more)
}

func doubtChange(doubt string) durable.Change {
	change := durable.Change{Record: durable.Record{Bucket: bucketState, Key: keyDoubt}}
	if doubt != "" {
		change.Value = []byte(doubt)
	}
	return change
}

// doubtful says whether the list may be old.
func (o *Objects) doubtful() bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.state.verdict.doubt != ""
}

// compareKubelet asks kubelet's directory. One that cannot be read holds the list.
func (o *Objects) compareKubelet() {
	uids, err := o.kubeletPods()
	if err != nil {
		o.hold(err.Error(), o.kubeletDir)
	}
	for _, uid := range uids {
		o.compare(Sandbox{UID: uid}, o.kubeletDir)
	}
}

// kubeletPods are the UIDs of the pods that kubelet has a folder of, without static ones.
func (o *Objects) kubeletPods() ([]string, error) {
	if o.kubeletDir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(filepath.Join(o.kubeletDir, "pods"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var uids []string
	for _, entry := range entries {
		if entry.IsDir() && !isStatic(entry.Name()) {
			uids = append(uids, entry.Name())
		}
	}
	return uids, err
}

// compareRuntime asks the container runtime as soon as it answers, which may be long after
// kubelet wants the list.
func (o *Objects) compareRuntime(ctx context.Context, sandboxes Sandboxes) {
	const pause = time.Second
	for o.doubtful() {
		if found, err := sandboxes(ctx); err == nil {
			for _, sandbox := range found {
				o.compare(sandbox, "the container runtime")
			}
			if trusted, reason := o.Trusted(); !trusted {
				o.log.Error(nil, "List of pods is held", "reason", reason)
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (o *Objects) compare(sandbox Sandbox, where string) {
	if sandbox.Static || isStatic(sandbox.UID) {
		return
	}
	o.mu.RLock()
	_, deleted := o.state.tombstones[sandbox.UID]
	listed := o.state.hasPod(sandbox.UID)
	o.mu.RUnlock()
	if !deleted && !listed {
		o.hold(sandbox.UID, where)
	}
}

func (o *Objects) hold(what, where string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state.verdict.strangers == nil {
		o.state.verdict.strangers = map[string]string{}
	}
	o.state.verdict.strangers[what] = where
}

// isStatic: kubelet makes UIDs of static pods by hashing, without the dashes of the API
// server's.
func isStatic(uid string) bool { return !strings.Contains(uid, "-") }

// hasPod says whether a pod is in the list, under its UID or, being the mirror of a static
// pod, under the static pod's.
func (s *state) hasPod(uid string) bool {
	c := s.collections[Pods]
	if c == nil {
		return false
	}
	for _, object := range c.objects {
		if string(object.UID) == uid {
			return true
		}
	}
	for _, object := range c.objects {
		if mirrorOf(object) == uid {
			return true
		}
	}
	return false
}

// mirrorOf is the UID of the static pod that a pod is the mirror of; empty: of none.
func mirrorOf(object Object) string {
	if !bytes.Contains(object.Raw, []byte(corev1.MirrorPodAnnotationKey)) {
		return ""
	}
	var pod struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(object.Raw, &pod) != nil {
		return ""
	}
	return pod.Metadata.Annotations[corev1.MirrorPodAnnotationKey]
}
