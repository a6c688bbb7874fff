package images

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"runtime"
	"slices"
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
	indexes   map[string]bool   // those that are indexes, by digest
	manifests map[string]string // digest by repository:tag
	pulls     map[string]int    // manifests that were handed out, by repository
}

// Push makes an image available as repository:tag, whatever its Name is.
func (r *Registry) Push(repository, tag string, image Image) error {
	p, err := image.parts(runtime.GOARCH)
	if err != nil {
		return err
	}
	r.put(repository+":"+tag, p.manifest, p.layer, p.config)
	return nil
}

// PushIndex makes an index of images available, each for an architecture.
func (r *Registry) PushIndex(repository, tag string, images map[string]Image) error {
	var manifests []map[string]any
	for _, architecture := range slices.Sorted(maps.Keys(images)) {
		p, err := images[architecture].parts(architecture)
		if err != nil {
			return err
		}
		r.put("", p.manifest, p.layer, p.config)
		manifests = append(manifests, map[string]any{
			"mediaType": manifestType, "digest": digest(p.manifest), "size": len(p.manifest),
			"platform": map[string]string{"os": "linux", "architecture": architecture},
		})
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests})
	if err != nil {
		return err
	}
	r.put(repository+":"+tag, index)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.indexes[digest(index)] = true
	return nil
}

// put takes a manifest, and what belongs to it. It gets a name unless that is empty.
func (r *Registry) put(name string, manifest []byte, blobs ...[]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blobs == nil {
		r.blobs, r.indexes, r.manifests, r.pulls = map[string][]byte{}, map[string]bool{}, map[string]string{}, map[string]int{}
	}
	for _, blob := range append(blobs, manifest) {
		r.blobs[digest(blob)] = blob
	}
	if name != "" {
		r.manifests[name] = digest(manifest)
	}
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
		if r.indexes[reference] {
			w.Header().Set("Content-Type", indexType)
		}
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
