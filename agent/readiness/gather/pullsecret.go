package gather

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// pullEntry is what a pull secret says of one registry.
type pullEntry struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// Auth is user and password, and counts for both.
	Auth  string `json:"auth,omitempty"`
	Email string `json:"email,omitempty"`
}

// holds says whether one of a pull secret's entries has a hash that kubelet remembers. It
// takes them as kubelet does (pkg/credentialprovider): JSON without the empty fields, SHA-256.
func holds(secret json.RawMessage, hash string) bool {
	var s corev1.Secret
	if hash == "" || json.Unmarshal(secret, &s) != nil {
		return false
	}
	var entries map[string]pullEntry
	switch s.Type {
	case corev1.SecretTypeDockerConfigJson:
		var file struct{ Auths map[string]pullEntry }
		if json.Unmarshal(s.Data[corev1.DockerConfigJsonKey], &file) != nil {
			return false
		}
		entries = file.Auths
	case corev1.SecretTypeDockercfg:
		if json.Unmarshal(s.Data[corev1.DockerConfigKey], &entries) != nil {
			return false
		}
	}
	for _, entry := range entries {
		if plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(entry.Auth, "=")); err == nil && entry.Auth != "" {
			entry.Username, entry.Password, _ = strings.Cut(string(plain), ":")
		}
		entry.Auth = ""
		text, err := json.Marshal(entry)
		sum := sha256.Sum256(text)
		if err == nil && hex.EncodeToString(sum[:]) == hash {
			return true
		}
	}
	return false
}
