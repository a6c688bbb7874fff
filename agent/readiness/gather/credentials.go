package gather

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/agent/snapshot"
)

// credentials are what kubelet remembers (since 1.35) of the pulls that it made, and which
// pods may use an image without asking the registry again.
type credentials struct {
	policy    string
	allowlist []string
	// stamp is when kubelet last remembered or forgot something.
	stamp string
	// pulled by image id; pulling are names of images whose pull has not ended.
	pulled  map[string]pulledRecord
	pulling map[string]bool
}

type pulledRecord struct {
	ImageRef          string                    `json:"imageRef"`
	CredentialMapping map[string]imageAccounted `json:"credentialMapping"`
}

type imageAccounted struct {
	Secrets    []pullSecret  `json:"kubernetesSecrets"`
	Accounts   []coordinates `json:"kubernetesServiceAccounts"`
	Accessible bool          `json:"nodePodsAccessible"`
}

type pullSecret struct {
	coordinates `json:",inline"`
	Hash        string `json:"credentialHash"`
}

type coordinates struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

const (
	neverVerify          = "NeverVerify"
	neverVerifyPreloaded = "NeverVerifyPreloadedImages"
	neverVerifyAllowed   = "NeverVerifyAllowlistedImages"
)

// credentials reads kubelet's records. A kubelet without the feature has none.
func (g *Gatherer) credentials(kubelet kubeletFacts) credentials {
	c := credentials{
		policy: kubelet.config.ImagePullCredentialsVerificationPolicy, allowlist: kubelet.config.PreloadedImagesVerificationAllowlist,
		pulled: map[string]pulledRecord{}, pulling: map[string]bool{},
	}
	if c.policy == "" {
		c.policy = neverVerifyPreloaded
	}
	dir := filepath.Join(g.Root+kubelet.root, "image_manager")
	if _, err := os.Stat(dir); err != nil {
		c.policy = neverVerify // nothing is remembered, nothing is verified
		return c
	}
	c.stamp = stampOf(filepath.Join(dir, "pulled"), filepath.Join(dir, "pulling"))
	if c.stamp == g.remembered.stamp {
		c.pulled, c.pulling = g.remembered.pulled, g.remembered.pulling
		return c
	}
	each(filepath.Join(dir, "pulled"), func(data []byte) {
		var record pulledRecord
		if json.Unmarshal(data, &record) == nil {
			c.pulled[record.ImageRef] = record
		}
	})
	each(filepath.Join(dir, "pulling"), func(data []byte) {
		var intent struct {
			Image string `json:"image"`
		}
		if json.Unmarshal(data, &intent) == nil {
			c.pulling[intent.Image] = true
		}
	})
	g.remembered = c
	return c
}

// stampOf changes when a file comes to one of the directories, or goes, or is replaced.
func stampOf(dirs ...string) string {
	var stamp strings.Builder
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			_, _ = fmt.Fprintln(&stamp, info.ModTime().UnixNano())
		}
	}
	return stamp.String()
}

func each(dir string, f func([]byte)) {
	entries, _ := os.ReadDir(dir) // absent: none
	for _, entry := range entries {
		if data, err := os.ReadFile(filepath.Join(dir, entry.Name())); err == nil {
			f(data)
		}
	}
}

// refuse says whether kubelet would ask the registry before the pod may use an image that
// is on the node.
func (c credentials) refuse(objects *snapshot.Objects, pod *corev1.Pod, name, id string) bool {
	record, pulled := c.pulled[id]
	switch c.policy {
	case neverVerify:
		return false
	case neverVerifyAllowed:
		for _, allowed := range c.allowlist {
			bare := trimTag(name)
			if prefix, ok := strings.CutSuffix(allowed, "/*"); ok && strings.HasPrefix(bare, prefix+"/") || allowed == bare {
				return false
			}
		}
	case neverVerifyPreloaded:
		if !pulled && !c.pulling[name] {
			return false
		}
	}
	access, ok := record.CredentialMapping[trimTag(name)]
	if !ok {
		return true
	}
	if access.Accessible {
		return false
	}
	for _, reference := range pod.Spec.ImagePullSecrets {
		secret, ok := objects.Get(snapshot.Secrets, pod.Namespace, reference.Name)
		for _, known := range access.Secrets {
			if ok && (known.coordinates == (coordinates{string(secret.UID), pod.Namespace, reference.Name}) || holds(secret.Raw, known.Hash)) {
				return false
			}
		}
	}
	for _, known := range access.Accounts {
		if known.Namespace == pod.Namespace && known.Name == pod.Spec.ServiceAccountName {
			return false
		}
	}
	return true
}

// trimTag takes tag and digest off an image's name, as kubelet does.
func trimTag(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name
}
