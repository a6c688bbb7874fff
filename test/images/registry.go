package images

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A Registry serves images to a container runtime, as far as pulling goes.
type Registry struct {
	// User and Password are asked for in repositories that begin with "private/".
	User, Password string

	mu        sync.Mutex
	blobs     map[string][]byte // by digest
	manifests map[string]string // digest by repository:tag
	pulls     map[string]int    // manifests that were handed out, by repository
}

// Push makes an image available as repository:tag, whatever its Name is.
func (r *Registry) Push(repository, tag string, image Image) error {
	p, err := image.parts()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blobs == nil {
		r.blobs, r.manifests, r.pulls = map[string][]byte{}, map[string]string{}, map[string]int{}
	}
	for _, blob := range [][]byte{p.layer, p.config, p.manifest} {
		r.blobs[digest(blob)] = blob
	}
	r.manifests[repository+":"+tag] = digest(p.manifest)
	return nil
}

// Pulls is how often a repository's manifests were handed out.
func (r *Registry) Pulls(repository string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pulls[repository]
}

var registryPath = regexp.MustCompile(`^/v2/(.+)/(manifests|blobs)/([^/]+)$`)

func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/v2/" {
		return
	}
	match := registryPath.FindStringSubmatch(request.URL.Path)
	if match == nil {
		http.NotFound(w, request)
		return
	}
	repository, kind, reference := match[1], match[2], match[3]
	if user, password, _ := request.BasicAuth(); strings.HasPrefix(repository, "private/") && (user != r.User || password != r.Password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	if kind == "manifests" {
		if tagged, ok := r.manifests[repository+":"+reference]; ok {
			reference = tagged
		}
		if request.Method == http.MethodGet {
			r.pulls[repository]++
		}
		w.Header().Set("Content-Type", manifestType)
	}
	blob, ok := r.blobs[reference]
	r.mu.Unlock()
	if !ok {
		http.NotFound(w, request)
		return
	}
	w.Header().Set("Docker-Content-Digest", reference)
	w.Header().Set("Content-Length", strconv.Itoa(len(blob)))
	if request.Method != http.MethodHead {
		_, _ = w.Write(blob)
	}
}
