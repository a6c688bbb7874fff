package images

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// namespace of Kubernetes in containerd.
	namespace = "k8s.io"
	// pinLabel is what keeps kubelet's garbage collection from an image; ourLabel beside it
	// says, in the same transaction, that the pin is the agent's to take away again.
	pinLabel, pinned = "io.cri-containerd.pinned", "pinned"
	ourLabel, ours   = "rekindle.edge/pinned", "true"
	// criLabel marks images that are CRI's.
	criLabel, managed = "io.cri-containerd.image", "managed"
	// pulledLabel is on what the agent has pulled and nobody had before.
	pulledLabel = "rekindle.edge/pulled"

	callTimeout = 10 * time.Second
	// pullTimeout bounds one pull; the runtime itself gives up on one without progress.
	pullTimeout = 30 * time.Minute
)

// present is an image that the runtime has.
type present struct {
	// id is the digest of its configuration.
	id   string
	size int64 // bytes
}

// record is a name in containerd's image store.
type record struct {
	target *imagesapi.Image
	// pinned by anybody; ours: by the agent. Pulled: by the agent.
	pinned, ours, pulled bool
}

// stock is what there is, by normal reference.
type stock struct {
	images map[string]present
	// records is nil for a runtime that is not containerd.
	records map[string]record
}

// alone says whether an image has no other tag: removing it removes it under all names.
func (s stock) alone(reference string) bool {
	for other, image := range s.images {
		if other != reference && image.id == s.images[reference].id && !strings.Contains(other, "@") {
			return false
		}
	}
	return true
}

// runtime talks to containerd, by CRI and by its own API.
type runtime struct{ connection grpc.ClientConnInterface }

// within bounds a call to containerd's own API.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(metadata.AppendToOutgoingContext(ctx, "containerd-namespace", namespace), callTimeout)
}

func (r *runtime) stock(ctx context.Context) (stock, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	listed, err := runtimeapi.NewImageServiceClient(r.connection).ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return stock{}, fmt.Errorf("container runtime: %w", err)
	}
	s := stock{images: map[string]present{}}
	for _, image := range listed.Images {
		for _, names := range [][]string{image.RepoTags, image.RepoDigests} {
			for _, name := range names {
				s.images[name] = present{id: image.Id, size: int64(image.Size)}
			}
		}
	}
	names, err := imagesapi.NewImagesClient(r.connection).List(ctx, &imagesapi.ListImagesRequest{})
	if status.Code(err) == codes.Unimplemented {
		return s, nil
	}
	if err != nil {
		return stock{}, fmt.Errorf("containerd: %w", err)
	}
	s.records = map[string]record{}
	for _, image := range names.Images {
		s.records[image.Name] = record{
			target: image, pinned: image.Labels[pinLabel] == pinned, ours: image.Labels[ourLabel] == ours,
			pulled: image.Labels[pulledLabel] == ours,
		}
	}
	return s, nil
}

func (r *runtime) pull(ctx context.Context, reference string, auth *runtimeapi.AuthConfig) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	_, err := runtimeapi.NewImageServiceClient(r.connection).PullImage(ctx, &runtimeapi.PullImageRequest{
		Image: &runtimeapi.ImageSpec{Image: reference}, Auth: auth,
	})
	return err
}

// remove takes an image away with all its names.
func (r *runtime) remove(ctx context.Context, reference string) error {
	ctx, cancel := within(ctx)
	defer cancel()
	_, err := runtimeapi.NewImageServiceClient(r.connection).RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: reference}})
	return err
}

// tag gives the image of one reference another one too. CRI hears of it by an event.
func (r *runtime) tag(ctx context.Context, from, to string) error {
	ctx, cancel := within(ctx)
	defer cancel()
	api := imagesapi.NewImagesClient(r.connection)
	source, err := api.Get(ctx, &imagesapi.GetImageRequest{Name: from})
	if err != nil {
		return err
	}
	if source.Image.GetTarget() == nil {
		return fmt.Errorf("containerd tells no target of image %s", from)
	}
	_, err = api.Create(ctx, &imagesapi.CreateImageRequest{Image: &imagesapi.Image{
		Name: to, Target: source.Image.Target, Labels: map[string]string{criLabel: managed},
	}})
	if status.Code(err) == codes.AlreadyExists {
		return nil
	}
	return err
}

// own notes that the agent has pulled an image.
func (r *runtime) own(ctx context.Context, name string) error {
	return r.label(ctx, name, map[string]string{pulledLabel: ours}, pulledLabel)
}

// pin sets or takes away the agent's pin.
func (r *runtime) pin(ctx context.Context, name string, on bool) error {
	var labels map[string]string
	if on {
		labels = map[string]string{pinLabel: pinned, ourLabel: ours}
	}
	return r.label(ctx, name, labels, pinLabel, ourLabel)
}

// label sets the labels with these keys, in one transaction; a value that is missing takes
// the label away. The target is sent although the mask leaves it out: containerd crashes
// over an image that has none.
func (r *runtime) label(ctx context.Context, name string, labels map[string]string, keys ...string) error {
	ctx, cancel := within(ctx)
	defer cancel()
	api := imagesapi.NewImagesClient(r.connection)
	now, err := api.Get(ctx, &imagesapi.GetImageRequest{Name: name})
	if err != nil {
		return err
	}
	if now.Image.GetTarget() == nil {
		return fmt.Errorf("containerd tells no target of image %s", name)
	}
	mask := &fieldmaskpb.FieldMask{}
	for _, key := range keys {
		mask.Paths = append(mask.Paths, "labels."+key)
	}
	_, err = api.Update(ctx, &imagesapi.UpdateImageRequest{
		Image: &imagesapi.Image{Name: name, Target: now.Image.Target, Labels: labels}, UpdateMask: mask,
	})
	return err
}

// refused says whether a failed pull was an answer of the registry, which asking again
// soon does not change, and not the way to it.
func refused(err error) bool {
	switch status.Code(err) {
	case codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true
	}
	text := strings.ToLower(err.Error())
	for _, sign := range []string{"not found", "unauthorized", "authorization failed", "forbidden", "denied", "no basic auth", "no match for platform"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// drain reads what is left of a stream.
func drain(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}
