// Package stale keeps the pod sandboxes of an earlier boot out of the way of a recovery.
//
// After a restart kubelet stops every sandbox that a pod ever had before it makes the new
// one, and each stop runs the network plugins. Nothing of those sandboxes is alive, so
// while the recovery runs the stop is acknowledged, and carried out afterwards.
//
// Such a stop gives back an address. What is deferred is therefore counted against the
// range that the pods of this boot take theirs from; where the range is short or not
// known, stops are carried out as they come.
//
// A sandbox is of an earlier boot if the runtime listed it as not ready before the first
// one of this boot was made. That set is kept in /run, together with what was
// acknowledged. Times of creation are not looked at: the clock may lie.
package stale
