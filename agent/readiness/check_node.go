package readiness

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rekindle.edge/api/v1alpha1"
)

// longRestart is a pause before a restart that costs more than kubelet's whole start.
const longRestart = 5 * time.Second

// defaultStaleness applies while no policy does.
const defaultStaleness = 300 * time.Second

func (f *findings) store(facts Facts) {
	node := facts.Node
	if node.Untrusted != "" {
		f.node(v1alpha1.ReasonPodListNotServed, v1alpha1.SeverityBlocksNode, "",
			"After a restart the list of pods would not be served until the API server is heard: %s.", node.Untrusted)
	}
	for _, what := range node.NotMirrored {
		f.node(v1alpha1.ReasonNotMirrored, v1alpha1.SeverityBlocksNode, what,
			"Kubelet waits for %s at its start and this node does not keep it. See SnapshotFresh and the findings ReadRefused.", what)
	}
	staleness := defaultStaleness
	if facts.Policy != nil && facts.Policy.Snapshot.MaxStalenessSeconds > 0 {
		staleness = time.Duration(facts.Policy.Snapshot.MaxStalenessSeconds) * time.Second
	}
	if !node.InStep.IsZero() && facts.Now.Sub(node.InStep) > staleness {
		f.node(v1alpha1.ReasonSnapshotStale, v1alpha1.SeveritySlows, "",
			"The snapshot was last in step with the API server longer ago than %s; the node would come back as it was then.", staleness)
	}
	if node.Unsealed {
		f.node(v1alpha1.ReasonNoSealedGeneration, v1alpha1.SeveritySlows, "",
			"The store has no sealed copy yet: if it were damaged now, nothing could be served cut off. One is made when nothing has changed for 10 seconds.")
	}
}

func (f *findings) installation(facts Facts) {
	node := facts.Node
	if node.Serving.Status == metav1.ConditionFalse {
		f.node(node.Serving.Reason, v1alpha1.SeverityBlocksNode, "", "%s", node.Serving.Message)
	}
	for _, path := range node.Missing {
		if !leads(path) {
			f.node(v1alpha1.ReasonInstallIncomplete, v1alpha1.SeveritySlows, path,
				"%s is missing. The next boot leads kubelet to the agent all the same; it is of use when something fails. Run rekindle-agent install again.", path)
			continue
		}
		f.node(v1alpha1.ReasonInstallIncomplete, v1alpha1.SeverityBlocksNode, path,
			"%s is missing, so the next boot would not lead kubelet to the agent. Run rekindle-agent install again.", path)
	}
	for _, unit := range node.Units {
		switch {
		case unit.State == "disabled" && unit.Pulled:
			f.node(v1alpha1.ReasonUnitDisabled, v1alpha1.SeveritySlows, unit.Name,
				"systemd has %s as disabled, and starts it at boot only because kubelet's unit wants it. Run systemctl enable %s.", unit.Name, unit.Name)
		case slices.Contains([]string{"disabled", "masked", "bad"}, unit.State):
			f.node(v1alpha1.ReasonUnitDisabled, v1alpha1.SeverityBlocksNode, unit.Name,
				"systemd has %s as %s and would not start it at boot. Run systemctl enable %s (unmask it first if it is masked).", unit.Name, unit.State, unit.Name)
		}
		if unit.Restart >= longRestart {
			f.node(v1alpha1.ReasonSlowRestart, v1alpha1.SeveritySlows, unit.Name,
				"%s waits %s before it is started again (RestartSec): a failed first start costs that much. Set it to 1s in a drop-in.", unit.Name, unit.Restart)
		}
	}
	if node.NetworkWait {
		f.node(v1alpha1.ReasonNetworkWait, v1alpha1.SeveritySlows, "network-online.target",
			"Kubelet waits for network-online.target, which may take minutes without a link. Run rekindle-agent install, and let /etc/resolv.conf be readable without a network.")
	}
	if node.Clockless {
		f.node(v1alpha1.ReasonNoClock, v1alpha1.SeveritySlows, "/dev/rtc0",
			"The machine has no clock that runs while it is off: after a power cut the time is wrong until the network gives it, and tokens may be refused until then.")
	}
}

// leads says whether a file of the installation is one of those by which a boot leads kubelet
// to the agent. The others mend what fails, or shorten a wait, which is told by itself.
func leads(path string) bool {
	name := filepath.Base(path)
	for _, helper := range []string{"rekindle-retry.", "rekindle-unhook.", "rekindle-early."} {
		if strings.HasPrefix(name, helper) {
			return false
		}
	}
	// Kubelet's unit wants the agent's, enabled or not; see UnitDisabled.
	return !strings.HasSuffix(filepath.Dir(path), ".wants")
}

func (f *findings) runtime(facts Facts) {
	node := facts.Node
	if node.Runtime.NotReady != "" {
		f.node(v1alpha1.ReasonRuntimeNotReady, v1alpha1.SeverityBlocksNode, "",
			"The container runtime says that it is not ready: %s", node.Runtime.NotReady)
	}
	cni := node.CNI
	if cni.Looked && !cni.Configured {
		f.node(v1alpha1.ReasonCNINotConfigured, v1alpha1.SeverityBlocksNode, "",
			"No CNI configuration is in %s that outlives a restart: pods without hostNetwork would wait. Have the CNI plugin write it there, on a disk, or add it to snapshot.nodeFiles.", cni.Dir)
	}
	for _, path := range cni.Lost {
		f.node(v1alpha1.ReasonCNIFileVolatile, v1alpha1.SeverityBlocksNode, path,
			"The CNI plugin needs %s for each pod, and a restart loses it. Add it to snapshot.nodeFiles of the policy.", path)
	}
	if cni.Asks != "" {
		f.node(v1alpha1.ReasonCNINeedsAPIServer, v1alpha1.SeverityBlocksNode, cni.Asks,
			"The CNI plugin %s asks the API server for each pod, which it cannot while the node is cut off. Point its kubeconfig at the local API.", cni.Asks)
	}
	if ends := cni.CredentialEnds; cni.Asks == "" && !ends.IsZero() && facts.Now.After(ends) {
		f.node(v1alpha1.ReasonCNICredentialEnded, v1alpha1.SeverityBlocksNode, cni.Credential,
			"The token in %s, by which the CNI plugin asks the local API for each pod, ran out at %s: no pod would get an address. Let the plugin renew it.", cni.Credential, ends.UTC().Format(time.RFC3339))
	}
}

func (f *findings) disks(facts Facts) {
	for _, disk := range facts.Node.Disks {
		if disk.ReadOnly {
			f.node(v1alpha1.ReasonDiskReadOnly, v1alpha1.SeverityBlocksNode, disk.Path,
				"The file system of %s (%s) is read-only. Look into the kernel's log, repair it and mount it again.", disk.Use, disk.Path)
		}
		if disk.Full != "" {
			f.node(v1alpha1.ReasonDiskFull, v1alpha1.SeverityBlocksNode, disk.Path,
				"The file system of %s (%s) is short of %s: pods cannot start, or kubelet evicts them as it starts. Make room.", disk.Use, disk.Path, disk.Full)
		} else if disk.Low != "" {
			f.node(v1alpha1.ReasonDiskFull, v1alpha1.SeveritySlows, disk.Path,
				"The file system of %s (%s) will soon be short of %s. Make room before kubelet evicts pods.", disk.Use, disk.Path, disk.Low)
		}
	}
}
