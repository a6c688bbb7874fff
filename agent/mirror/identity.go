package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/agent/snapshot"
)

// An address does not say which cluster answers: an API server may have been replaced by an
// empty one, or its etcd restored from a backup, behind the same name and certificate. The
// node recognises its cluster by what only that one can have: the Node of the known UID, or,
// when somebody has deleted and re-made the Node, the Service default/kubernetes of the known
// UID. A cluster that shows neither is another one and nothing of it is taken.
//
// A cluster that has neither gone on from where it was nor is another one was restored: the
// line of its versions is broken. What it lacks may be lost and not deleted.

// sighting is what the server shows of itself.
type sighting struct {
	// nodeUID and nodeVersion are of this node's Node; empty: there is none.
	nodeUID     string
	nodeVersion uint64
	// version the server is at.
	version uint64
	// serviceUID is of default/kubernetes; empty: there is none, or it was not asked for.
	serviceUID string
}

// sameCluster says whether a sighting is of the known cluster.
func sameCluster(known, seen sighting) bool {
	if known.nodeUID == "" && known.serviceUID == "" {
		return true
	}
	return (known.nodeUID != "" && known.nodeUID == seen.nodeUID) ||
		(known.serviceUID != "" && known.serviceUID == seen.serviceUID)
}

// lineBroken says whether the server is at an earlier state than the one already seen.
func lineBroken(known, seen sighting) bool {
	sameNode := known.nodeUID != "" && known.nodeUID == seen.nodeUID
	return seen.version < known.version || (sameNode && seen.nodeVersion < known.nodeVersion)
}

// line is what is known of the server's versions. It outlives the agent where it matters.
type line struct {
	// Version is the highest that was seen since the line began.
	version uint64
	// BrokenAt is when the line was last seen to be broken; zero: never.
	BrokenAt time.Time `json:"brokenAt"`
}

const (
	rememberKind = "mirror"
	rememberLine = "line"
)

func (m *Mirror) loadLine() {
	if value, ok := m.objects.Remembered(rememberKind)[rememberLine]; ok {
		// What cannot be read is a line that was never broken.
		_ = json.Unmarshal(value, &m.line)
	}
	// Also of pods that are over: the server has been there. Nothing is decoded, since a start
	// waits for this.
	stored, _ := m.objects.List(pods)
	for _, object := range stored {
		m.line.version = max(m.line.version, number(object.ResourceVersion))
	}
}

// known is what is known of the cluster.
func (m *Mirror) known(node string) sighting {
	m.mu.Lock()
	seen := sighting{version: m.line.version}
	m.mu.Unlock()
	if object, ok := m.objects.Get(nodes, "", node); ok {
		seen.nodeUID, seen.nodeVersion = string(object.UID), number(object.ResourceVersion)
		seen.version = max(seen.version, seen.nodeVersion)
	}
	if object, ok := m.objects.Get(services, metav1.NamespaceDefault, "kubernetes"); ok {
		seen.serviceUID = string(object.UID)
	}
	return seen
}

// errOther: the server is not of this node's cluster.
type errOther struct{ known, seen sighting }

func (e errOther) Error() string {
	return fmt.Sprintf("the API server is not of this node's cluster: the Node has UID %q and default/kubernetes %q, known are %q and %q; "+
		"nothing of it is taken. If the node has moved to another cluster, stop the agent and remove its store", e.seen.nodeUID, e.seen.serviceUID, e.known.nodeUID, e.known.serviceUID)
}

// look asks the server to show itself.
func (s *session) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	known := s.m.known(s.node)
	// Not limited: everything waits for it.
	objects, version, err := s.looker.list(ctx, s.nodeTarget(), 0)
	if err != nil {
		return err
	}
	seen := sighting{version: number(version)}
	if len(objects) == 1 {
		seen.nodeUID, seen.nodeVersion = string(objects[0].UID), number(objects[0].ResourceVersion)
	}
	if !sameCluster(known, seen) {
		scope := snapshot.Scope{Resource: services, Namespace: metav1.NamespaceDefault, Name: "kubernetes"}
		_, object, err := s.looker.get(ctx, scope)
		if err != nil {
			return err
		}
		seen.serviceUID = string(object.UID)
	}
	if !sameCluster(known, seen) {
		return errOther{known, seen}
	}
	return s.m.seen(s.log, known, seen)
}

// seen takes note of a sighting of the known cluster.
func (m *Mirror) seen(log logr.Logger, known, seen sighting) error {
	broken := lineBroken(known, seen)
	m.mu.Lock()
	m.liveNodeUID, m.heard = seen.nodeUID, m.wall()
	if !broken {
		m.line.version = max(m.line.version, seen.version)
		m.mu.Unlock()
		return nil
	}
	m.line = line{version: seen.version, BrokenAt: m.wall()}
	m.epoch++
	value, err := json.Marshal(m.line)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	log.Info("API server is at an earlier state than before, everything is listed anew and no pod is taken for deleted by what it lacks",
		"version", seen.version, "versionBefore", known.version, "for", lineDistrust.String())
	m.objects.Remember(rememberKind, rememberLine, value)
	// The Node is of the new line at once: its old version must not break that line again.
	told := map[any]bool{}
	for _, scope := range m.objects.Scopes() {
		if !told[scope.Resource] {
			told[scope.Resource] = true
			if err := m.objects.Reset(scope.Resource, strconv.FormatUint(seen.version, 10)); err != nil {
				return err
			}
		}
	}
	return nil
}

// number of a version; 0 if it is none.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
