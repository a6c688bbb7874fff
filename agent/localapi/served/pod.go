package served

import (
	"encoding/json"

	"rekindle.edge/agent/localapi/rawobject"
	"rekindle.edge/agent/snapshot"
)

// containers calls change with every container of a pod and keeps what it changed.
func containers(pod rawobject.Fields, kinds []string, change func(container rawobject.Fields) bool) {
	spec := rawobject.Of(pod["spec"])
	changed := false
	for _, kind := range kinds {
		list := spec.List(kind)
		touched := false
		for _, container := range list {
			touched = change(container) || touched
		}
		if touched {
			spec.Set(kind, list)
			changed = true
		}
	}
	if changed {
		pod.Set("spec", spec)
	}
}

// useLocal has images that may be taken as they are on the node used without asking the
// registry. Kubelet's own check of the pod's credentials stays.
func useLocal(pod rawobject.Fields, may func(container, image string) bool) {
	containers(pod, []string{"initContainers", "containers"}, func(container rawobject.Fields) bool {
		if container.Text("imagePullPolicy") != "Always" || !may(container.Text("name"), container.Text("image")) {
			return false
		}
		container.Set("imagePullPolicy", "IfNotPresent")
		return true
	})
}

// PulledImages are the images that pods want pulled each time.
func PulledImages(pods []snapshot.Object) []string {
	var images []string
	for _, pod := range pods {
		containers(rawobject.Of(pod.Raw), []string{"initContainers", "containers"}, func(container rawobject.Fields) bool {
			if container.Text("imagePullPolicy") == "Always" {
				images = append(images, container.Text("image"))
			}
			return false
		})
	}
	return images
}

// probe is the part of a probe that is changed.
type probe struct {
	PeriodSeconds    int32           `json:"periodSeconds"`
	TimeoutSeconds   int32           `json:"timeoutSeconds"`
	FailureThreshold int32           `json:"failureThreshold"`
	SuccessThreshold int32           `json:"successThreshold"`
	Exec             json.RawMessage `json:"exec"`
}

// fastProbes lets readiness probes run as often as their timeout allows. Thresholds grow
// as periods shrink: what was tolerated for thirty seconds still is. Probes that run a
// program stay as they are, since many of them at once load the node. Failures are tolerated
// once more than that where it is said.
func fastProbes(pod rawobject.Fields, once int32) {
	containers(pod, []string{"initContainers", "containers"}, func(container rawobject.Fields) bool {
		var old probe
		if container["readinessProbe"] == nil || json.Unmarshal(container["readinessProbe"], &old) != nil || old.Exec != nil {
			return false
		}
		fast := max(1, old.TimeoutSeconds)
		period := orDefault(old.PeriodSeconds, 10)
		if fast >= period {
			return false
		}
		changed := rawobject.Of(container["readinessProbe"])
		changed.Set("periodSeconds", fast)
		changed.Set("failureThreshold", scale(orDefault(old.FailureThreshold, 3), period, fast)+once)
		// One success is one success: it is the first that is waited for.
		if old.SuccessThreshold > 1 {
			changed.Set("successThreshold", scale(old.SuccessThreshold, period, fast))
		}
		container.Set("readinessProbe", changed)
		return true
	})
}

// runsUnready says whether kubelet has a container running that it does not call ready.
func runsUnready(pod rawobject.Fields) bool {
	status := pod.Part("status")
	for _, kind := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, c := range status.List(kind) {
			if string(c["ready"]) == "false" && c.Part("state")["running"] != nil {
				return true
			}
		}
	}
	return false
}

func orDefault(value, unset int32) int32 {
	if value == 0 {
		return unset
	}
	return value
}

// scale is how many periods of the new length a number of the old is, rounded up.
func scale(threshold, from, to int32) int32 { return (threshold*from + to - 1) / to }
