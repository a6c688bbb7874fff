// Package served changes the copies of Node and pods that kubelet is served after a boot,
// so that it is fast and loses nothing. The changes reach nobody else, neither other
// clients on the node nor the API server.
package served
