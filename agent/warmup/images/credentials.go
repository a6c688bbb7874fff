package images

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// entry is one registry's in a pull secret.
type entry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
}

// credentials of pull secrets that fit a reference, the most specific first, as kubelet
// would try them. A secret that cannot be read counts for nothing.
func credentials(reference string, secrets []*corev1.Secret) []*runtimeapi.AuthConfig {
	type candidate struct {
		server string
		auth   *runtimeapi.AuthConfig
	}
	var fitting []candidate
	for _, secret := range secrets {
		for server, e := range entries(secret) {
			if !fits(server, reference) {
				continue
			}
			auth := &runtimeapi.AuthConfig{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken}
			if auth.Username == "" {
				decoded, err := base64.StdEncoding.DecodeString(e.Auth)
				user, password, ok := strings.Cut(strings.TrimRight(string(decoded), "\x00"), ":")
				if err == nil && ok {
					auth.Username, auth.Password = user, password
				}
			}
			if auth.Username != "" || auth.IdentityToken != "" {
				fitting = append(fitting, candidate{server, auth})
			}
		}
	}
	slices.SortStableFunc(fitting, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(len(b.server), len(a.server)), strings.Compare(a.server, b.server))
	})
	var all []*runtimeapi.AuthConfig
	for _, c := range fitting {
		all = append(all, c.auth)
	}
	return all
}

func entries(secret *corev1.Secret) map[string]entry {
	var found map[string]entry
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		var config struct {
			Auths map[string]entry `json:"auths"`
		}
		if json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config) == nil {
			found = config.Auths
		}
	case corev1.SecretTypeDockercfg:
		if json.Unmarshal(secret.Data[corev1.DockerConfigKey], &found) != nil {
			return nil
		}
	}
	return found
}

// fits says whether a server of a pull secret is for a reference: the same host, whose
// names may be patterns, and a path that the reference's begins with.
func fits(server, reference string) bool {
	server = strings.TrimPrefix(strings.TrimPrefix(server, "https://"), "http://")
	host, prefix, _ := strings.Cut(server, "/")
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		host = "docker.io"
	}
	prefix = strings.Trim(prefix, "/")
	if prefix == "v1" || prefix == "v2" {
		prefix = ""
	}
	if repo := strings.TrimPrefix(repository(reference), registry(reference)+"/"); prefix != "" && repo != prefix && !strings.HasPrefix(repo, prefix+"/") {
		return false
	}
	wantHost, wantPort, _ := strings.Cut(registry(reference), ":")
	haveHost, havePort, _ := strings.Cut(host, ":")
	want, have := strings.Split(wantHost, "."), strings.Split(haveHost, ".")
	if havePort != wantPort || len(want) != len(have) {
		return false
	}
	for i := range want {
		if ok, err := path.Match(have[i], want[i]); err != nil || !ok {
			return false
		}
	}
	return true
}
