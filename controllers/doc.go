// Package controllers turns each EdgeRecoveryPolicy into one NodeRecovery for every node
// that follows it, and what the nodes report into the status of the policy.
//
// What to do is decided by pure functions (assign, render, planNode, aggregate); two thin
// reconcilers read the cache, ask them and write. Nothing is remembered between two passes:
// whatever was missed while the manager was down is found again from the objects alone.
package controllers

// fieldOwner is the field manager of everything that the controllers write.
const fieldOwner = "rekindle-manager"
