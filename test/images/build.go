package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// BuildStatic builds a main package of this module without cgo into dir and gives
// the binary's path. A build that is up to date takes well under a second.
func BuildStatic(ctx context.Context, pkg, dir string) (string, error) {
	binary := filepath.Join(dir, path.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", pkg, err, out)
	}
	return binary, nil
}

// Standard builds the images that every test node has.
func Standard(ctx context.Context, dir string) ([]Image, error) {
	var all []Image
	for _, image := range []struct{ name, pkg string }{
		{Pause, "rekindle.edge/test/images/pause"},
		{Web, "rekindle.edge/test/images/web"},
	} {
		binary, err := BuildStatic(ctx, image.pkg, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, Image{Name: image.name, Binary: binary})
	}
	return all, nil
}
