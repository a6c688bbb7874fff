package offline

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/types"
)

// process is the PID, on the node, of a pod's first container as the local API has it.
func process(ctx context.Context, pod string) string {
	GinkgoHelper()
	id, err := kubectl(ctx, "get", "pod", pod, "-o", "'jsonpath={.status.containerStatuses[0].containerID}'")
	Expect(err).NotTo(HaveOccurred(), id)
	id = strings.TrimPrefix(id, "containerd://")
	for line := range strings.Lines(shell(ctx, "ctr -n k8s.io tasks list")) {
		if fields := strings.Fields(line); fields[0] == id {
			return fields[1]
		}
	}
	Fail("the status of " + pod + " names container " + id + ", which does not run")
	return ""
}

// file is what a pod's first container reads in a file.
func file(ctx context.Context, pod, path string) string {
	GinkgoHelper()
	return shell(ctx, "cat /proc/"+process(ctx, pod)+"/root"+path)
}

// environment is that of a pod's first container.
func environment(ctx context.Context, pod string) []string {
	GinkgoHelper()
	return strings.Split(shell(ctx, "tr '\\0' '\\n' </proc/"+process(ctx, pod)+"/environ"), "\n")
}

// runs is how often a pod's container was started, by its own count.
func runs(ctx context.Context, pod, container string) int {
	GinkgoHelper()
	return strings.Count(shell(ctx, "cat "+runsOf(pod, container))+"\n", "\n")
}

// claims of a token.
type claims struct {
	Audience   []string `json:"aud"`
	Expires    int64    `json:"exp"`
	Issued     int64    `json:"iat"`
	Kubernetes struct {
		Pod struct {
			UID types.UID `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

func (c claims) life(now time.Time) time.Duration { return time.Unix(c.Expires, 0).Sub(now) }

func claimsOf(token string) claims {
	GinkgoHelper()
	parts := strings.Split(token, ".")
	Expect(parts).To(HaveLen(3), "not a token: %q", token)
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	Expect(err).NotTo(HaveOccurred())
	var c claims
	Expect(json.Unmarshal(payload, &c)).To(Succeed())
	return c
}
