package gate

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"rekindle.edge/test/images"
)

// criImages are the images that critest pulls, made of this machine's own files.
var criImages = []struct {
	repository string
	tags       []string
	// own is a file that this image alone has.
	own, user  string
	entrypoint []string
}{
	{repository: "e2e-test-images/busybox", tags: []string{"1.29-2"}},
	{repository: "e2e-test-images/nginx", tags: []string{"1.14-2"}, entrypoint: webServer(80)},
	{repository: "e2e-test-images/httpd", tags: []string{"2.4.39-4"}, entrypoint: []string{"sh", "-c", "echo httpd; exec httpd -f -p 80 -h /usr/share/nginx"}},
	{repository: "k8s-staging-cri-tools/hostnet-nginx-amd64", tags: []string{"latest"}, entrypoint: webServer(12003)},
	{repository: "k8s-staging-cri-tools/test-image-latest", tags: []string{"latest"}, own: "latest"},
	{repository: "k8s-staging-cri-tools/test-image-tag", tags: []string{"test"}, own: "test"},
	{repository: "k8s-staging-cri-tools/test-image-tag", tags: []string{"all"}, own: "all"},
	{repository: "k8s-staging-cri-tools/test-image-1", tags: []string{"latest"}, own: "1"},
	{repository: "k8s-staging-cri-tools/test-image-2", tags: []string{"latest"}, own: "2"},
	{repository: "k8s-staging-cri-tools/test-image-3", tags: []string{"latest"}, own: "3"},
	{repository: "k8s-staging-cri-tools/test-image-tags", tags: []string{"1", "2", "3"}, own: "tags"},
	{repository: "k8s-staging-cri-tools/test-image-user-uid", tags: []string{"latest"}, own: "uid", user: "1002"},
	{repository: "k8s-staging-cri-tools/test-image-user-username", tags: []string{"latest"}, own: "username", user: "www-data"},
	{repository: "k8s-staging-cri-tools/test-image-user-uid-group", tags: []string{"latest"}, own: "uid-group", user: "1003:users"},
	{repository: "k8s-staging-cri-tools/test-image-user-username-group", tags: []string{"latest"}, own: "username-group", user: "www-data:100"},
	{repository: "k8s-staging-cri-tools/test-image-predefined-group", tags: []string{"latest"}, own: "predefined", user: "1000"},
	{repository: "pause", tags: []string{"3.9"}, own: "pause", entrypoint: []string{"sleep", "infinity"}},
}

// webServer looks like nginx to who asks for its process.
func webServer(port int) []string {
	return []string{"sh", "-c", fmt.Sprintf("echo $$ >/var/run/nginx.pid; exec nginx -listen=:%d 'master process'", port)}
}

// serveCRIImages has the node pull critest's images from this machine. There is no way to
// the registries that they are of.
func serveCRIImages(ctx context.Context, node *edge) {
	GinkgoHelper()
	tools := criTools(ctx)
	registry := &images.Registry{}
	for _, i := range criImages {
		root := GinkgoT().TempDir()
		Expect(os.CopyFS(root, os.DirFS(tools))).To(Succeed())
		Expect(os.Chmod(filepath.Join(root, "tmp"), 0o777)).To(Succeed())
		if i.own != "" {
			Expect(os.WriteFile(filepath.Join(root, "own"), []byte(i.own), 0o644)).To(Succeed())
		}
		if len(i.entrypoint) == 0 {
			i.entrypoint = []string{"sh"}
		}
		for _, tag := range i.tags {
			Expect(registry.Push(i.repository, tag, images.Image{Name: i.repository, Root: root, Args: i.entrypoint, User: i.user})).To(Succeed())
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(shared.Network().HostIP().String(), "0"))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: registry, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	for _, host := range []string{"registry.k8s.io", "k8s.gcr.io", "gcr.io"} {
		dir := "/etc/containerd/certs.d/" + host
		_, err := node.ExecInput(ctx, strings.NewReader(fmt.Sprintf("server = 'http://%s'\n", listener.Addr())), "sh", "-ec", "mkdir -p "+dir+"; cat >"+dir+"/hosts.toml")
		Expect(err).NotTo(HaveOccurred())
	}
}

var library = regexp.MustCompile(`(/\S+) \(0x`)

// criTools makes a root of Debian's busybox, which runs a program of its own only under that
// program's name, and of what it lacks.
func criTools(ctx context.Context) string {
	GinkgoHelper()
	root := GinkgoT().TempDir()
	put := func(path string, mode os.FileMode, content []byte) {
		GinkgoHelper()
		path = filepath.Join(root, path)
		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, content, mode)).To(Succeed())
	}
	install := func(from, to string) {
		GinkgoHelper()
		content, err := os.ReadFile(from)
		Expect(err).NotTo(HaveOccurred())
		put(to, 0o755, content)
	}
	for _, program := range []string{"/usr/bin/busybox", "/usr/bin/ipcs"} {
		install(program, strings.TrimPrefix(program, "/usr"))
		libraries, err := exec.CommandContext(ctx, "ldd", program).Output()
		Expect(err).NotTo(HaveOccurred())
		for _, m := range library.FindAllStringSubmatch(string(libraries), -1) {
			install(m[1], m[1])
		}
	}
	applets, err := exec.CommandContext(ctx, "busybox", "--list").Output()
	Expect(err).NotTo(HaveOccurred())
	for name := range strings.FieldsSeq(string(applets)) {
		switch name {
		case "busybox":
		case "ls": // a spec hides it, which would hide what a link points at
			install("/usr/bin/busybox", "bin/ls")
		default:
			Expect(os.Symlink("/bin/busybox", filepath.Join(root, "bin", name))).To(Succeed())
		}
	}
	put("bin/pgrep", 0o755, []byte("#!/bin/sh\nexec pidof \"$1\"\n"))
	put("etc/passwd", 0o644, []byte("root:x:0:0::/root:/bin/sh\nwww-data:x:33:33::/:/bin/sh\ndefault-user:x:1000:1000::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"))
	put("etc/group", 0o644, []byte("root:x:0:\nwww-data:x:33:\nusers:x:100:\ndefault-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\nnogroup:x:65534:\n"))
	put("usr/share/nginx/index.html", 0o644, []byte("served\n"))
	for _, dir := range []string{"tmp", "var/run", "root"} {
		Expect(os.MkdirAll(filepath.Join(root, dir), 0o755)).To(Succeed())
	}
	web, err := images.BuildStatic(ctx, "rekindle.edge/test/images/web", GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	install(web, "bin/nginx")
	return root
}
