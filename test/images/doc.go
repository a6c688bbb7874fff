// Package images makes small container images on the spot: one static binary
// each, as an OCI archive for "ctr images import". No registry, no network and no
// container engine take part.
//
//	binary, err := images.BuildStatic(ctx, "rekindle.edge/test/images/web", dir)
//	err = images.Image{Name: images.Web, Binary: binary}.Write(file)
package images

// Names of the images that every test node has.
const (
	// Pause holds a pod's namespaces open.
	Pause = "rekindle.edge/test/pause:1"
	// Web answers /readyz on port 8080, see its main.go.
	Web = "rekindle.edge/test/web:1"
)
