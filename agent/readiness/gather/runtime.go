package gather

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/agent/readiness"
)

// Runtime is what is asked of the container runtime.
type Runtime interface {
	Status(ctx context.Context, in *runtimeapi.StatusRequest, opts ...grpc.CallOption) (*runtimeapi.StatusResponse, error)
	ListImages(ctx context.Context, in *runtimeapi.ListImagesRequest, opts ...grpc.CallOption) (*runtimeapi.ListImagesResponse, error)
	ImageStatus(ctx context.Context, in *runtimeapi.ImageStatusRequest, opts ...grpc.CallOption) (*runtimeapi.ImageStatusResponse, error)
	ImageFsInfo(ctx context.Context, in *runtimeapi.ImageFsInfoRequest, opts ...grpc.CallOption) (*runtimeapi.ImageFsInfoResponse, error)
}

// imageCache keeps what the runtime said of images by their names in pods, for as long as
// its list of images is the same.
type imageCache map[string]*runtimeapi.Image

// runtime asks the container runtime; nil: it does not answer. A name is asked for once,
// since the runtime knows best which image it leads to.
func (g *Gatherer) runtime(ctx context.Context, facts *readiness.Facts, pods []cachedPod) imageCache {
	ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	images, err := g.ask(ctx, facts, pods)
	if err != nil {
		facts.Invisible = append(facts.Invisible, "the container runtime at "+g.Settings.CRIEndpoint+" does not answer, see systemctl status "+g.Settings.ContainerdUnit)
		g.images = nil
		return nil
	}
	return images
}

func (g *Gatherer) ask(ctx context.Context, facts *readiness.Facts, pods []cachedPod) (imageCache, error) {
	// The runtime's configuration does not change while it runs; it tells more than is asked for.
	status, err := g.Runtime.Status(ctx, &runtimeapi.StatusRequest{Verbose: g.cniDir == ""})
	if err != nil {
		return nil, err
	}
	if g.cniDir == "" {
		g.cniDir = cniDirOf(status.GetInfo())
	}
	for _, condition := range status.GetStatus().GetConditions() {
		if !condition.Status && (condition.Type == runtimeapi.RuntimeReady || condition.Type == runtimeapi.NetworkReady) {
			facts.Node.Runtime.NotReady = condition.Type + ": " + condition.Message
			break
		}
	}
	list, err := g.Runtime.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, err
	}
	if stamp := fingerprint(list.Images); g.images == nil || stamp != g.imageStamp {
		g.imageStamp, g.images = stamp, imageCache{}
	}
	if g.Content != nil {
		if err := g.Content.Begin(); err != nil {
			facts.Invisible = append(facts.Invisible, "which images were seen to be damaged cannot be read ("+err.Error()+"); the agent checks them all and writes it anew, see journalctl -u rekindle-agent if it does not")
		}
	}
	if g.blobs == "" {
		g.blobs = g.contentDir(ctx)
	}
	for _, cached := range pods {
		if cached.pod == nil {
			continue
		}
		for _, use := range usesOf(cached.pod) {
			if err := g.askImage(ctx, use.name); err != nil {
				return nil, err
			}
		}
	}
	return g.images, nil
}

func (g *Gatherer) askImage(ctx context.Context, name string) error {
	if _, known := g.images[name]; known {
		return nil
	}
	answer, err := g.Runtime.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}})
	if err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	g.images[name] = answer.GetImage()
	return nil
}

// cniDirOf is the directory of CNI configurations that containerd tells; without one, its
// default.
func cniDirOf(info map[string]string) string {
	var config struct {
		CNI struct {
			ConfDir string `json:"confDir"`
		} `json:"cni"`
	}
	if json.Unmarshal([]byte(info["config"]), &config) != nil || config.CNI.ConfDir == "" {
		return cniDir
	}
	return config.CNI.ConfDir
}

func fingerprint(images []*runtimeapi.Image) uint64 {
	var sum uint64
	for _, image := range images {
		hash := fnv.New64a()
		_, _ = fmt.Fprint(hash, image.Id, image.RepoTags, image.RepoDigests, image.Pinned)
		sum += hash.Sum64()
	}
	return sum
}

// contentDir is where containerd has the content of images; empty: the runtime is another. It
// notes by the way whether images are unpacked with overlayfs.
func (g *Gatherer) contentDir(ctx context.Context) string {
	answer, err := g.Runtime.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil || len(answer.ImageFilesystems) == 0 {
		return ""
	}
	root, plugin := filepath.Split(answer.ImageFilesystems[0].GetFsId().GetMountpoint())
	if !strings.HasPrefix(plugin, "io.containerd.") {
		return ""
	}
	g.overlay = plugin == "io.containerd.snapshotter.v1.overlayfs"
	return filepath.Join(root, "io.containerd.content.v1.content", "blobs")
}
