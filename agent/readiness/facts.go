package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rekindle.edge/api/v1alpha1"
)

// Facts are what the dry run is made over. What could not be looked at is named in
// Invisible and left at its zero value, which no check takes for a fault.
type Facts struct {
	Now  time.Time
	Pods []Pod
	Node Node
	// Policy that was taken over; nil: built-in defaults.
	Policy *v1alpha1.NodeRecoverySpec
	// Missed is what clients on the node asked for in vain while it was cut off.
	Missed []v1alpha1.MissedResource
	// Invisible says in words what could not be looked at, such as the container runtime.
	Invisible []string
}

// Pod is a pod that should run, with what the node has of what it needs.
type Pod struct {
	*corev1.Pod
	Objects []Object
	// TokensMissing counts tokens that its volumes want and the node does not keep.
	TokensMissing int
	// Drivers are the CSI drivers of its volumes.
	Drivers []string
	// Attached says that a volume of it is attached to the node and may be used by one
	// node alone.
	Attached bool
	Images   []Image
	// Stage is the pod's place in the start-up, StageName its name: pods of a lower one
	// start first. All are 0 without stages.
	Stage     int
	StageName string
	// Calls are services that its commands or environment name.
	Calls []Call
}

// Call is a service that a pod names.
type Call struct {
	// Service is namespace/name.
	Service string
	// Pods of this node that the service leads to.
	Pods []types.UID
}

// ObjectState says what the node has of an object.
type ObjectState int

// States of an object.
const (
	ObjectPresent ObjectState = iota
	// ObjectAbsent is known not to exist.
	ObjectAbsent
	// ObjectUnknown is not there, and may exist.
	ObjectUnknown
	ObjectUnreadable
)

// Object is one that a pod refers to.
type Object struct {
	// Resource is plural, such as configmaps. Name is empty for secrets.
	Resource, Name string
	// Place in the pod that refers to it.
	Place    string
	Optional bool
	State    ObjectState
	// MissingKeys are keys that the pod asks for and the object does not have.
	MissingKeys []string
}

// Image is what the node has of an image that a pod uses.
type Image struct {
	// User is who uses it, such as container "app".
	User, Name string
	// Always says that the pull policy is Always. Unproven: the user has not run with the
	// image here, so that the local API does not take it for one that it may use.
	Always, Unproven bool
	// Present on the node under that name.
	Present, Pinned bool
	// Damaged says in words what of its content is lost; empty: nothing that can be seen.
	Damaged string
	// Changed says that the name leads to another image than the container runs.
	Changed bool
	// Refused says that kubelet would ask the registry whether the pod may use it. Pulling:
	// since the pull of it has not ended.
	Refused, Pulling bool
}

// Node is what was found on the node beside its pods.
type Node struct {
	// Untrusted is why the stored list of pods would not be served; empty: it would.
	Untrusted string
	// NotMirrored are collections and objects that kubelet waits for and the node lacks.
	NotMirrored []string
	// InStep is when the snapshot was last known in step; zero: never.
	InStep time.Time
	// Unsealed says that the store has pods and no sealed generation.
	Unsealed bool

	// Serving is the condition LocalAPIServing. Missing are files of the installation that
	// are not there.
	Serving metav1.Condition
	Missing []string
	Units   []Unit
	// NetworkWait says that kubelet waits for network-online.target and nothing shortens it.
	NetworkWait bool

	// Identity is why kubelet's identity cannot be used; empty: it can.
	Identity string
	// Certificate is kubelet's client certificate, Authority the CA by which the node knows
	// the API server.
	Certificate, Authority Certificate
	// Broken are files that kubelet does not start with, and what is wrong with each.
	Broken  []BrokenFile
	Kubelet Kubelet

	Runtime Runtime
	CNI     CNI
	Disks   []Disk
	// Clockless says that the machine has no clock that runs while it is off.
	Clockless bool
	// Devices are the resources of device plugins that kubelet remembers.
	Devices []string
	// Volatile says whether a restart empties a path, LateMount whether it is on a disk
	// that the boot does not wait for, NeverMount on one that it does not mount. Nil: not known.
	Volatile, LateMount, NeverMount func(path string) bool
}

// Unit is a unit of systemd that must be there at boot.
type Unit struct {
	Name string
	// State as systemd has it, such as enabled; empty: not known.
	State string
	// Pulled says that a unit which starts at boot starts it.
	Pulled bool
	// Restart is the pause before systemd starts it again.
	Restart time.Duration
}

// Certificate is a certificate's life.
type Certificate struct{ NotBefore, NotAfter time.Time }

// BrokenFile is a file and what is wrong with it. Mended: the agent moves it aside at boot,
// before kubelet starts.
type BrokenFile struct {
	Path, Why string
	Mended    bool
}

// Kubelet is its configuration, as far as a restart depends on it.
type Kubelet struct {
	// Problem is why the configuration cannot be read; empty: it was, or there is none.
	Problem string
	// GracefulShutdown says that shutdownGracePeriod is set.
	GracefulShutdown bool
	// Checkpoints that do not fit the configuration.
	Checkpoints []BrokenFile
}

// Runtime is what the container runtime says of itself.
type Runtime struct {
	// NotReady is the runtime's own reason why it is not ready; empty: it is.
	NotReady string
}

// CNI is the configuration of the pod network.
type CNI struct {
	// Looked says that the directory was read. Configured: it has a configuration that
	// outlives a restart. Dir is the directory.
	Looked, Configured bool
	Dir                string
	// Lost are files that plugins need and a restart loses.
	Lost []string
	// Asks names a plugin that asks the API server for each pod; empty: none does.
	Asks string
	// CredentialEnds is when a plugin's credential for the local API runs out, the first of
	// them, and Credential the file that has it.
	CredentialEnds time.Time
	Credential     string
}

// Disk is a file system that a restart writes to.
type Disk struct {
	// Use is what it is for, such as kubelet's directory. Path is in it.
	Use, Path string
	ReadOnly  bool
	// Full says in words what is short: space or inodes; empty: nothing.
	Full string
	// Low is the same for what is short soon.
	Low string
}
