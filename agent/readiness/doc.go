// Package readiness is a dry run of the next boot: would this node come back by itself if it
// restarted now, cut off? It takes facts and gives findings, and does no I/O; package gather
// reads the facts from the snapshot, the container runtime and the node.
//
// A finding that blocks a pod, or the node, says that it would not come back while the API
// server is out of reach. One that slows does not change that. What cannot be looked at is no
// finding: without a finding that blocks, the verdict is Unknown then.
package readiness
