package images

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/api/v1alpha1"
	"rekindle.edge/test/images"
)

// realRuntime starts a containerd of its own, without network or pods, and a registry.
func realRuntime(t *testing.T) (*runtime, *images.Registry, string, string) {
	t.Helper()
	if os.Getenv("REKINDLE_E2E") == "" || os.Getuid() != 0 {
		t.Skip("needs root and bin/tools; set REKINDLE_E2E=1")
	}
	tools, err := filepath.Abs("../../../bin/tools")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/var/tmp", "rekindle-images-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	registry := &images.Registry{User: "u", Password: "p"}
	server := httptest.NewServer(registry)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")

	config := filepath.Join(dir, "config.toml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, `version = 3
root = '%[1]s/root'
state = '%[1]s/state'
[grpc]
  address = '%[1]s/containerd.sock'
[plugins.'io.containerd.internal.v1.opt']
  path = '%[1]s/opt'
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['%[1]s/none']
  conf_dir = '%[1]s/none'
[plugins.'io.containerd.nri.v1.nri']
  disable = true
`, dir), 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	containerd := exec.Command(filepath.Join(tools, "containerd"), "-c", config)
	containerd.Stdout, containerd.Stderr = log, log
	must(t, containerd.Start())
	t.Cleanup(func() {
		_ = containerd.Process.Kill()
		_ = containerd.Wait()
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("containerd: %s", said[max(0, len(said)-5000):])
		}
	})
	client := cri.New("unix://" + filepath.Join(dir, "containerd.sock"))
	t.Cleanup(func() { _ = client.Close() })
	r := &runtime{client}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if _, err = r.stock(t.Context()); err == nil {
			return r, registry, host, dir
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// push makes a file of noise an image.
func push(t *testing.T, registry *images.Registry, repository, name string) string {
	t.Helper()
	content := make([]byte, 300<<10)
	_, _ = rand.Read(content)
	binary := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(binary, content, 0o755))
	must(t, registry.Push(repository, "1", images.Image{Binary: binary}))
	return string(content)
}

func TestContainerd(t *testing.T) {
	r, registry, host, dir := realRuntime(t)
	ctx := t.Context()
	entry := func(reference string) (present, record) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			s, err := r.stock(ctx)
			must(t, err)
			if image, ok := s.images[reference]; ok {
				return image, s.records[reference]
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is not there, but %v", reference, s.images)
			}
		}
	}
	// listedPinned is what kubelet's garbage collection is told.
	listedPinned := func(id string) bool {
		t.Helper()
		listed, err := runtimeapi.NewImageServiceClient(r.connection).ListImages(ctx, &runtimeapi.ListImagesRequest{})
		must(t, err)
		for _, image := range listed.Images {
			if image.Id == id {
				return image.Pinned
			}
		}
		return false
	}

	t.Run("a private image needs the secret", func(t *testing.T) {
		push(t, registry, "private/app", "app")
		reference := host + "/private/app:1"
		if err := r.pull(ctx, reference, nil); err == nil || !refused(err) {
			t.Fatalf("without: %v", err)
		}
		must(t, r.pull(ctx, reference, &runtimeapi.AuthConfig{Username: "u", Password: "p"}))
		entry(reference)
	})
	t.Run("what the registry does not have is refused, what is not heard is not", func(t *testing.T) {
		if err := r.pull(ctx, host+"/none:1", nil); err == nil || !refused(err) {
			t.Errorf("missing: %v", err)
		}
		closed := httptest.NewServer(http.NotFoundHandler())
		closed.Close()
		if err := r.pull(ctx, strings.TrimPrefix(closed.URL, "http://")+"/none:1", nil); err == nil || refused(err) {
			t.Errorf("silent: %v", err)
		}
	})
	t.Run("a pin is what CRI tells, and is taken away again", func(t *testing.T) {
		push(t, registry, "pinned", "pinned")
		reference := host + "/pinned:1"
		must(t, r.pull(ctx, reference, nil))
		must(t, r.own(ctx, reference))
		for _, on := range []bool{true, false} {
			must(t, r.pin(ctx, reference, on))
			image, record := entry(reference)
			for deadline := time.Now().Add(5 * time.Second); listedPinned(image.id) != on; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("CRI does not say pinned: %v", on)
				}
			}
			if record.pinned != on || record.ours != on || !record.pulled {
				t.Errorf("record %+v", record)
			}
		}
	})
	t.Run("a digest gets a tag", func(t *testing.T) {
		push(t, registry, "tagged", "tagged")
		must(t, r.pull(ctx, host+"/tagged:1", nil))
		image, record := entry(host + "/tagged:1")
		digest := record.target.Target.Digest
		must(t, r.remove(ctx, host+"/tagged:1"))
		must(t, r.pull(ctx, host+"/tagged@"+digest, nil))
		must(t, r.tag(ctx, host+"/tagged@"+digest, host+"/tagged:1"))
		if again, _ := entry(host + "/tagged:1"); again.id != image.id {
			t.Errorf("image %s, was %s", again.id, image.id)
		}
	})

	t.Run("of an index this platform's image is pulled, looked at and mended", func(t *testing.T) {
		file := func(name string) (images.Image, []byte) {
			content := make([]byte, 300<<10)
			_, _ = rand.Read(content)
			binary := filepath.Join(t.TempDir(), name)
			must(t, os.WriteFile(binary, content, 0o755))
			return images.Image{Binary: binary}, content
		}
		mine, content := file("mine")
		theirs, _ := file("theirs")
		other := map[bool]string{true: "arm64", false: "amd64"}[goruntime.GOARCH == "amd64"]
		must(t, registry.PushIndex("both", "1", map[string]images.Image{goruntime.GOARCH: mine, other: theirs}))
		reference := host + "/both:1"
		must(t, r.pull(ctx, reference, nil))
		image, record := entry(reference)
		if !strings.HasSuffix(record.target.Target.MediaType, "index.v1+json") {
			t.Errorf("the name is of a %s", record.target.Target.MediaType)
		}
		snapshots := filepath.Join(dir, "root/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs")
		files := glob(filepath.Join(snapshots, "mine"))
		if len(files) != 1 || len(glob(filepath.Join(snapshots, "theirs"))) != 0 {
			t.Fatalf("files %v", files)
		}
		target := record.target.Target.Digest
		must(t, r.inspect(ctx, target, image.id))
		must(t, rewrite(files[0], make([]byte, len(content))))
		o, err := r.check(ctx, target, image.id, func(string) bool { return false }, func(string) {})
		must(t, err)
		if got, _ := os.ReadFile(files[0]); o.mended != 1 || string(got) != string(content) {
			t.Errorf("outcome %+v", o)
		}
	})

	damage := map[string]struct {
		blob bool
		do   func(file string) error
	}{
		"an emptied file is mended from the blob":   {do: func(file string) error { return os.Truncate(file, 0) }},
		"a zeroed file is mended from the blob":     {do: func(file string) error { return rewrite(file, make([]byte, 300<<10)) }},
		"a lost file is mended from the blob":       {do: os.Remove},
		"a zeroed file and blob: got anew":          {blob: true, do: func(file string) error { return rewrite(file, make([]byte, 300<<10)) }},
		"a lost file, and a blob of zeros: anew":    {blob: true, do: os.Remove},
		"a blob of zeros under sound files: anew":   {blob: true, do: func(string) error { return nil }},
		"a layer that is not damaged is left as is": {do: func(string) error { return nil }},
	}
	number := 0
	for name, tc := range damage {
		number++
		t.Run(name, func(t *testing.T) {
			app := fmt.Sprintf("app%d", number)
			content := push(t, registry, app, app)
			reference := host + "/" + app + ":1"
			pull := func() error { return r.pull(ctx, reference, nil) }
			must(t, pull())
			image, record := entry(reference)
			target := record.target.Target.Digest
			must(t, r.sync(ctx, target, image.id))
			must(t, r.inspect(ctx, target, image.id))
			pattern := filepath.Join(dir, "root/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs", app)
			files, _ := filepath.Glob(pattern)
			if len(files) != 1 {
				t.Fatalf("files %v", files)
			}
			sound, before := 0, files[0]
			check := func() (outcome, error) {
				return r.check(ctx, target, image.id, func(string) bool { return false }, func(string) { sound++ })
			}
			u, err := r.unpacked(ctx, target, image.id)
			must(t, err)
			must(t, tc.do(before))
			if tc.blob {
				path := filepath.Join(dir, "root/io.containerd.content.v1.content/blobs/sha256", strings.TrimPrefix(u.layers[0].blob.Digest, "sha256:"))
				must(t, os.Chmod(path, 0o600))
				must(t, rewrite(path, make([]byte, u.layers[0].blob.Size)))
			}
			now, _ := os.ReadFile(before)
			visible := strings.Trim(string(now), "\x00") == ""
			if err := r.inspect(ctx, target, image.id); (err != nil) != visible {
				t.Errorf("a quick look: %v, visible %v", err, visible)
			}
			o, err := check()
			if tc.blob {
				if !errors.Is(err, errContent) {
					t.Fatalf("check: %v", err)
				}
				must(t, r.renew(ctx, target, image.id, pull))
				o, err = check()
			}
			must(t, err)
			if want := map[bool]int{true: 1}[!tc.blob && string(now) != content]; o.mended != want || sound != 1 || o.unchecked != "" {
				t.Errorf("outcome %+v, want %d mended; %d layers sound", o, want, sound)
			}
			whole := false
			for _, file := range glob(pattern) {
				got, _ := os.ReadFile(file)
				whole = whole || string(got) == content
			}
			if !whole {
				t.Error("the file is not what it was")
			}
		})
	}

	t.Run("a view leaves nothing behind", func(t *testing.T) {
		out, err := exec.Command(filepath.Join("../../../bin/tools", "ctr"), "-a", filepath.Join(dir, "containerd.sock"), "-n", namespace, "snapshots", "ls").CombinedOutput()
		must(t, err)
		if strings.Contains(string(out), "rekindle-check") {
			t.Errorf("snapshots: %s", out)
		}
	})
}

func glob(pattern string) []string {
	files, _ := filepath.Glob(pattern)
	return files
}

func TestKeeperOnContainerd(t *testing.T) {
	r, registry, host, dir := realRuntime(t)
	want := push(t, registry, "private/till", "till")
	push(t, registry, "large", "large")
	till, large := host+"/private/till:1", host+"/large:1"
	keep := func(boot string, unclean bool, spec *v1alpha1.NodeRecoverySpec, settled func(Report) bool) Report {
		t.Helper()
		objects := &fakeObjects{secrets: map[string]snapshot.Object{"shop/key": object(t, &corev1.Secret{
			Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"username":"u","password":"p"}}}`, host)},
		}, "key")}}
		objects.pods = []snapshot.Object{object(t, pod("holder", func(p *corev1.Pod) {
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "key"}}
		}), "holder")}
		recovered := make(chan struct{})
		close(recovered)
		k := New(Options{
			Containerd: r.connection, StateFile: filepath.Join(dir, "images.json"),
			BootID: boot, Unclean: unclean, Objects: objects, Spec: func() *v1alpha1.NodeRecoverySpec { return spec }, Recovered: recovered,
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { k.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			report := k.Report()
			if report.Status != nil && settled(report) {
				return report
			}
			if time.Now().After(deadline) {
				t.Fatalf("report %+v, status %+v", report.Warm, report.Status)
			}
		}
	}
	record := func(reference string) record {
		t.Helper()
		s, err := r.stock(t.Context())
		must(t, err)
		return s.records[reference]
	}
	budget := resource.MustParse("400Ki")
	spec := &v1alpha1.NodeRecoverySpec{CacheWarmup: v1alpha1.CacheWarmup{Images: v1alpha1.WarmImages{Extra: []string{till, large}, MaxSize: &budget}}}

	// Without a budget's room for the second, the first is pulled with the pod's secret.
	report := keep("one", false, spec, func(r Report) bool {
		return r.Status.Present == 1 && len(r.Status.Problems) == 1 && r.Status.Problems[0].Reason == v1alpha1.ImageOverBudget
	})
	if report.Status.Pinned != 1 || !record(till).ours {
		t.Errorf("status %+v, record %+v", report.Status, record(till))
	}
	keep("one", false, spec, func(Report) bool { return record(large).target == nil })

	// Seen from outside the keeper, without a restart: what is lost, and that it was mended.
	s, err := r.stock(t.Context())
	must(t, err)
	looker := &Looker{StateFile: filepath.Join(dir, "images.json"), runtime: r}
	look := func() string {
		must(t, looker.Begin())
		return looker.Look(t.Context(), Asked{
			Name: till, ID: s.images[till].id, Program: "/till", Blobs: filepath.Join(dir, "root/io.containerd.content.v1.content/blobs"), Overlay: true,
		})
	}
	if problem := look(); problem != "" {
		t.Errorf("whole, and %s", problem)
	}

	// A power cut has zeroed the first; nothing is pulled to mend it.
	file := glob(filepath.Join(dir, "root/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs/till"))[0]
	must(t, rewrite(file, make([]byte, len(want))))
	if problem := look(); !strings.Contains(problem, "/till is empty") {
		t.Errorf("zeroed, and %q", problem)
	}
	keep("two", true, spec, func(Report) bool {
		got, err := os.ReadFile(file)
		return err == nil && string(got) == want
	})

	if problem := look(); problem != "" {
		t.Errorf("mended, and %s", problem)
	}

	// The agent leaves the node, and only its own pins go.
	if !record(till).ours {
		t.Fatal("it is not pinned")
	}
	must(t, Unpin(t.Context(), r.connection))
	if got := record(till); got.pinned || got.ours {
		t.Errorf("record %+v", got)
	}
	must(t, r.pin(t.Context(), till, true))

	// No policy: no pin of the agent's is left.
	keep2 := New(Options{Objects: &fakeObjects{}, Spec: func() *v1alpha1.NodeRecoverySpec { return nil }})
	keep2.runtime = r
	keep2.state, err = loadState(filepath.Join(dir, "other.json"), "two", false)
	must(t, err)
	keep2.pass(t.Context(), true)
	if got := record(till); got.pinned || got.ours {
		t.Errorf("record %+v", got)
	}
}
