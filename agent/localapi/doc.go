// Package localapi serves the Kubernetes API on the node itself. Its contract with
// kubelet and other callers is in docs/localapi.md.
package localapi
