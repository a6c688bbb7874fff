package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	leasesapi "github.com/containerd/containerd/api/services/leases/v1"
	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// snapshotter whose layers can be looked at: each is a directory.
const snapshotter = "overlayfs"

// collectTimeout bounds the wait for a garbage collection.
const collectTimeout = 2 * time.Minute

// maxDocument bounds manifests and configurations.
const maxDocument = 8 << 20

// Errors of content.
var (
	// errContent says that a blob is lost or is not what its digest says.
	errContent = errors.New("blob is damaged")
	// errUnpacked says that the image's files are not there at all.
	errUnpacked = errors.New("layers are not unpacked")
	// errUnchecked says that this kind of layer or snapshotter cannot be looked at.
	errUnchecked = errors.New("cannot be checked")
)

// descriptor, manifest and configuration as far as they are read here.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

type manifest struct {
	// Manifests are those of an index.
	Manifests []descriptor `json:"manifests"`
	Config    descriptor   `json:"config"`
	Layers    []descriptor `json:"layers"`
}

type configuration struct {
	Config struct {
		Entrypoint []string
		Cmd        []string
		Env        []string
	} `json:"config"`
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// layer is one of an image.
type layer struct {
	blob descriptor
	// chain is the name of its snapshot.
	chain string
	// dirs are its directory and those of the layers below, next one first.
	dirs []string
}

// unpacked is an image with its layers, lowest first.
type unpacked struct {
	config configuration
	layers []layer
}

// blob reads a blob; the end of the stream is an error if the digest does not match.
func (r *runtime) blob(ctx context.Context, digest string) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, "containerd-namespace", namespace))
	stream, err := contentapi.NewContentClient(r.connection).Read(ctx, &contentapi.ReadContentRequest{Digest: digest})
	if err != nil {
		cancel()
		return nil, err
	}
	return &blobReader{recv: stream.Recv, cancel: cancel, sum: sha256.New(), want: digest}, nil
}

type blobReader struct {
	recv   func() (*contentapi.ReadContentResponse, error)
	cancel context.CancelFunc
	rest   []byte
	sum    interface {
		io.Writer
		Sum([]byte) []byte
	}
	want string
}

func (b *blobReader) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		answer, err := b.recv()
		if errors.Is(err, io.EOF) {
			if got := "sha256:" + hex.EncodeToString(b.sum.Sum(nil)); got != b.want {
				return 0, fmt.Errorf("%w: %s has the content of %s", errContent, b.want, got)
			}
			return 0, io.EOF
		}
		if err != nil {
			if c := status.Code(err); c == codes.NotFound || c == codes.OutOfRange || c == codes.Unknown {
				return 0, fmt.Errorf("%w: %s: %w", errContent, b.want, err)
			}
			return 0, err
		}
		b.rest = answer.Data
	}
	n := copy(p, b.rest)
	_, _ = b.sum.Write(b.rest[:n])
	b.rest = b.rest[n:]
	return n, nil
}

func (b *blobReader) Close() error { b.cancel(); return nil }

// document reads a small blob as JSON.
func (r *runtime) document(ctx context.Context, digest string, into any) error {
	blob, err := r.blob(ctx, digest)
	if err != nil {
		return err
	}
	defer func() { _ = blob.Close() }()
	data, err := io.ReadAll(io.LimitReader(blob, maxDocument))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", digest, err)
	}
	return nil
}

// deleteBlobs makes containerd forget damaged blobs, so that the next pull fetches them. Its
// records go at once, its files with the garbage collection, and a file that is still there
// would be taken for good: so it waits for a collection, which the end of a lease brings.
func (r *runtime) deleteBlobs(ctx context.Context, digests []string) error {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, "containerd-namespace", namespace), collectTimeout)
	defer cancel()
	for _, digest := range digests {
		_, err := contentapi.NewContentClient(r.connection).Delete(ctx, &contentapi.DeleteContentRequest{Digest: digest})
		if err != nil && status.Code(err) != codes.NotFound {
			return err
		}
	}
	leases := leasesapi.NewLeasesClient(r.connection)
	lease := fmt.Sprintf("rekindle-check-%d", time.Now().UnixNano())
	if _, err := leases.Create(ctx, &leasesapi.CreateRequest{ID: lease}); err != nil {
		return err
	}
	_, err := leases.Delete(ctx, &leasesapi.DeleteRequest{ID: lease, Sync: true})
	return err
}

// unpacked finds the layers of the image with this id behind a name's target: of an index,
// the manifest that the runtime has chosen for this platform.
func (r *runtime) unpacked(ctx context.Context, target, id string) (unpacked, error) {
	var top manifest
	if err := r.document(ctx, target, &top); err != nil {
		return unpacked{}, err
	}
	chosen := top
	for _, d := range top.Manifests {
		var m manifest
		if err := r.document(ctx, d.Digest, &m); err == nil && m.Config.Digest == id {
			chosen = m
			break
		}
	}
	if chosen.Config.Digest != id {
		return unpacked{}, fmt.Errorf("%w: no manifest of %s has the configuration %s", errContent, target, id)
	}
	u := unpacked{}
	if err := r.document(ctx, id, &u.config); err != nil {
		return unpacked{}, err
	}
	diffs := u.config.RootFS.DiffIDs
	if len(diffs) == 0 || len(diffs) != len(chosen.Layers) {
		return unpacked{}, fmt.Errorf("%w: %d layers, %d in the configuration", errUnchecked, len(chosen.Layers), len(diffs))
	}
	chains := chainIDs(diffs)
	dirs, err := r.directories(ctx, chains[len(chains)-1])
	if err != nil {
		return unpacked{}, err
	}
	if len(dirs) != len(chains) {
		return unpacked{}, fmt.Errorf("%w: %d directories of %d layers", errUnchecked, len(dirs), len(chains))
	}
	for i := range chains {
		u.layers = append(u.layers, layer{blob: chosen.Layers[i], chain: chains[i], dirs: dirs[len(dirs)-1-i:]})
	}
	return u, nil
}

// chainIDs are the names of snapshots, from the digests of the layers.
func chainIDs(diffs []string) []string {
	chains := slices.Clone(diffs)
	for i := 1; i < len(chains); i++ {
		sum := sha256.Sum256([]byte(chains[i-1] + " " + diffs[i]))
		chains[i] = "sha256:" + hex.EncodeToString(sum[:])
	}
	return chains
}

// directories of a chain of snapshots, the top first. A view is made to learn them, and
// removed; it is not mounted.
func (r *runtime) directories(ctx context.Context, chain string) ([]string, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	api := snapshotsapi.NewSnapshotsClient(r.connection)
	key := fmt.Sprintf("rekindle-check-%d-%s", time.Now().UnixNano(), chain[max(0, len(chain)-12):])
	view, err := api.View(ctx, &snapshotsapi.ViewSnapshotRequest{Snapshotter: snapshotter, Key: key, Parent: chain})
	switch status.Code(err) {
	case codes.OK:
	case codes.NotFound:
		return nil, errUnpacked
	case codes.InvalidArgument, codes.Unimplemented:
		return nil, fmt.Errorf("%w: no snapshotter %s", errUnchecked, snapshotter)
	default:
		return nil, err
	}
	defer func() {
		_, _ = api.Remove(ctx, &snapshotsapi.RemoveSnapshotRequest{Snapshotter: snapshotter, Key: key})
	}()
	if len(view.Mounts) != 1 {
		return nil, fmt.Errorf("%w: %d mounts", errUnchecked, len(view.Mounts))
	}
	m := view.Mounts[0]
	if m.Type == "bind" {
		return []string{m.Source}, nil
	}
	for _, option := range m.Options {
		if lower, ok := strings.CutPrefix(option, "lowerdir="); ok {
			return strings.Split(lower, ":"), nil
		}
	}
	return nil, fmt.Errorf("%w: a mount of type %s", errUnchecked, m.Type)
}

// removeChain removes snapshots from the top down to the given layer. It fails without
// harm at the first that a container, or another image, stands on.
func (r *runtime) removeChain(ctx context.Context, layers []layer) error {
	ctx, cancel := within(ctx)
	defer cancel()
	for _, l := range slices.Backward(layers) {
		_, err := snapshotsapi.NewSnapshotsClient(r.connection).Remove(ctx, &snapshotsapi.RemoveSnapshotRequest{Snapshotter: snapshotter, Key: l.chain})
		if err != nil && status.Code(err) != codes.NotFound {
			return fmt.Errorf("snapshot of %s: %w", l.blob.Digest, err)
		}
	}
	return nil
}

// layers are the directories of an image's layers, the topmost first.
func (r *runtime) layers(ctx context.Context, target, id string) ([]string, error) {
	u, err := r.unpacked(ctx, target, id)
	if err != nil {
		return nil, err
	}
	return u.layers[len(u.layers)-1].dirs, nil
}

// base is the directory that all layers' directories are in.
func base(u unpacked) string { return filepath.Dir(filepath.Dir(u.layers[0].dirs[0])) }
