// Package order decides which pod of a node that comes back may start now, and why the
// others wait.
//
// The pods of the list that the local API serves are put into groups: the critical ones,
// the policy's stages in their order, the rest. Without stages there is one group. The pods
// of a group may start once every pod of the groups before is where it was waited for, or
// will never get there, or the time of its group is up. Within a group the most important
// start first, a few at once. What is held is the call that makes a pod's sandbox; kubelet
// does what comes before it (volumes, secrets) for all pods at once.
//
// planner is the decision: it has no clock and does nothing. Holder holds calls by it.
package order
