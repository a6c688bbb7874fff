// Package gather reads the facts that the verdict is made over: from the snapshot in memory,
// from the container runtime, and from files of the node. Its readers are thin and keep what
// does not change, since they run every few seconds.
package gather

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/config"
	"rekindle.edge/agent/localapi"
	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
)

// runtimeTimeout bounds what one pass waits for the container runtime.
const runtimeTimeout = time.Second

// Identity reads what the node is known by upstream.
type Identity interface {
	Read() (*localapi.Identity, error)
}

// Gatherer reads the facts of one node. It is for one goroutine.
type Gatherer struct {
	Settings config.Config
	Objects  *snapshot.Objects
	// Spec that was taken over; nil: built-in defaults.
	Spec func() *snapshot.Spec
	// Serving is the condition LocalAPIServing; unset: the agent does not serve. Files
	// are those of the installation, nil when the agent is not installed.
	Serving func() metav1.Condition
	Files   func() ([]string, error)
	Missed  func() []v1alpha1.MissedResource
	// Identity of the node, as kubelet's files have it.
	Identity Identity
	Units    Units
	Runtime  Runtime
	// Content of images; nil: not looked at.
	Content Content
	// Root of the node's files, "" but for tests.
	Root string
	Now  func() time.Time
	// statfs of the system, nil but for tests.
	statfs func(path string, fs *unix.Statfs_t) error

	pods    podCache
	objects objectCache
	images  imageCache
	mounts  mountTable
	units   unitCache
	// imageStamp is of the list that images is of; blobs is where their content is.
	imageStamp uint64
	blobs      string
	overlay    bool
	remembered credentials
	// kubeletArgs are of the kubelet that was last seen.
	kubeletArgs []string
	called      callCache
	// cniDir is where the runtime has the configuration of the pod network, once known.
	cniDir string
	// made are paths that a start makes again, as of madeAt and of the files then.
	made      []string
	madeAt    time.Time
	madeStamp string
	// full are paths whose file systems were short when last looked at.
	full map[string]bool
}

// Facts reads everything anew that may have changed.
func (g *Gatherer) Facts(ctx context.Context) readiness.Facts {
	facts := readiness.Facts{Now: g.Now(), Missed: g.Missed()}
	if spec := g.Spec(); spec != nil {
		facts.Policy = &spec.Spec
	}
	node := g.identity(&facts)
	g.store(&facts, node)
	facts.Node.Serving = g.Serving()
	if facts.Node.Serving.Status == metav1.ConditionUnknown {
		facts.Invisible = append(facts.Invisible, facts.Node.Serving.Message)
	}
	g.systemd(ctx, &facts)
	kubelet := g.kubelet(ctx, &facts)
	g.mounts.read(g.Root)
	g.disks(&facts, kubelet)
	facts.Node.Volatile, facts.Node.LateMount, facts.Node.NeverMount = g.volatile, g.mounts.late, g.mounts.never
	pods := g.stored(node)
	g.put(pods, facts.Policy)
	var images func(*corev1.Pod) []readiness.Image
	if known := g.runtime(ctx, &facts, pods); known != nil {
		credentials := g.credentials(kubelet)
		images = func(pod *corev1.Pod) []readiness.Image { return g.imagesOf(ctx, pod, known, credentials) }
	}
	g.cni(&facts)
	g.look(&facts, pods, images)
	slices.Sort(facts.Invisible)
	return facts
}

// identity returns the node's name, empty if it is not known.
func (g *Gatherer) identity(facts *readiness.Facts) string {
	identity, err := g.Identity.Read()
	if err != nil {
		facts.Node.Identity = err.Error()
	}
	if identity == nil {
		return g.Settings.NodeName
	}
	if leaf := identity.Certificate.Leaf; leaf != nil {
		facts.Node.Certificate = readiness.Certificate{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}
	}
	if ca := identity.Authority; ca != nil {
		facts.Node.Authority = readiness.Certificate{NotBefore: ca.NotBefore, NotAfter: ca.NotAfter}
	}
	return identity.Node
}

// Collections that kubelet lists before it starts the first pod.
var waitedFor = []schema.GroupVersionResource{
	{Version: "v1", Resource: "services"},
	{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"},
}

func (g *Gatherer) store(facts *readiness.Facts, node string) {
	if trusted, why := g.Objects.Trusted(); !trusted {
		facts.Node.Untrusted = why
	}
	for _, resource := range waitedFor {
		if !g.Objects.Known(snapshot.Scope{Resource: resource}) {
			facts.Node.NotMirrored = append(facts.Node.NotMirrored, resource.GroupResource().String())
		}
	}
	if _, ok := g.Objects.Get(snapshot.Nodes, "", node); !ok && node != "" {
		facts.Node.NotMirrored = append(facts.Node.NotMirrored, "nodes/"+node)
	}
	facts.Node.InStep, _ = g.Objects.InStep(snapshot.Pods)
	generation, _ := snapshot.OnDisk(g.Settings.StateDir)
	facts.Node.Unsealed = generation == 0 && facts.Node.Untrusted == ""
}
