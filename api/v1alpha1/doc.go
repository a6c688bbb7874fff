// Package v1alpha1 holds the two kinds of the API group rekindle.edge:
// EdgeRecoveryPolicy, which people write, and NodeRecovery, one for each node,
// whose spec the controller writes and whose status the agent of that node writes.
//
// Units are part of a field's name (…Seconds, …Milliseconds); sizes are quantities.
// The package imports nothing else of this module.
//
// +kubebuilder:object:generate=true
// +groupName=rekindle.edge
package v1alpha1
