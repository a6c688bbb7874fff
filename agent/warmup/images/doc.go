// Package images keeps container images on the node: those of its pods and those of the
// policy. They are pulled through CRI, pinned against kubelet's garbage collection with
// containerd's label, and checked after a power cut, whose traces are mended from the
// layers' blobs: containerd syncs a blob to the disk, but not what it unpacks.
//
// A pass decides purely what is to be done (wanted.go, plan.go) and does one thing, the
// most important; then it looks again (keeper.go).
package images
