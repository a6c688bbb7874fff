// Package install puts the agent between kubelet and the API server, as one transaction,
// and takes it out again so that the node is byte for byte what it was.
//
// Install looks first and refuses; it saves what it is about to change, changes it, and
// proves that kubelet is as well as before, or else restores. What an interrupted run
// left is restored before anything new is tried.
package install
