// Package collection holds what the local API serves: one collection a resource, each with
// its line of versions and a window of changes that watches read from.
//
// A collection's version rises with every change, by more than one when upstream's has. An
// object keeps the version it has upstream, so an object's version is never above the one
// its change got in the line. A watch that goes on from an object's version may therefore
// hear of a change twice, and never misses one.
package collection
