package gate

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/test/images"
	"rekindle.edge/test/internal/lab"
)

const (
	registryUser     = "robot"
	registryPassword = "let me in"
)

// A registry serves images to be pulled. Those of repositories with "private" in their
// name are for the robot alone.
type registry struct {
	blobs map[string][]byte // by digest; a manifest by its tag as well

	mu    sync.Mutex
	asked int // for manifests
}

// newRegistry serves one image under every name and the tag 1.
func newRegistry(image images.Image) *registry {
	GinkgoHelper()
	var archive bytes.Buffer
	Expect(image.Write(&archive)).To(Succeed())
	r := &registry{blobs: map[string][]byte{}}
	var index struct {
		Manifests []struct{ Digest string }
	}
	for files := tar.NewReader(&archive); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(files)
		Expect(err).NotTo(HaveOccurred())
		if header.Name == "index.json" {
			Expect(json.Unmarshal(content, &index)).To(Succeed())
			continue
		}
		r.blobs["sha256:"+path.Base(header.Name)] = content
	}
	r.blobs["1"] = r.blobs[index.Manifests[0].Digest]
	r.blobs[index.Manifests[0].Digest] = r.blobs["1"]
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	user, password, _ := request.BasicAuth()
	if strings.Contains(request.URL.Path, "private") && (user != registryUser || password != registryPassword) {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if request.URL.Path == "/v2/" {
		return
	}
	content, ok := r.blobs[path.Base(request.URL.Path)]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if path.Base(path.Dir(request.URL.Path)) == "manifests" {
		r.mu.Lock()
		r.asked++
		r.mu.Unlock()
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	}
	w.Header().Set("Docker-Content-Digest", path.Base(request.URL.Path))
	if path.Base(request.URL.Path) == "1" {
		w.Header().Del("Docker-Content-Digest")
	}
	_, _ = w.Write(content)
}

func (r *registry) manifests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// serve answers at an address of this machine, or of a node if it is named.
func (r *registry) serve(node, address string) (where string) {
	GinkgoHelper()
	var listener net.Listener
	listen := func() (err error) {
		listener, err = net.Listen("tcp", address) //nolint:noctx // it must not leave the thread
		return err
	}
	if node != "" {
		Expect(lab.Inside("/run/netns/"+shared.Lab().NetNS("node-"+node), listen)).To(Succeed())
	} else {
		Expect(listen()).To(Succeed())
	}
	server := &http.Server{Handler: r}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return listener.Addr().String()
}
