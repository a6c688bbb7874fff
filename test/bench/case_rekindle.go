package main

import (
	"time"

	"rekindle.edge/api/v1alpha1"
)

// rekindleOffline is a node with the agent that is cut off.
var rekindleOffline = benchCase{
	name:    "rekindle-offline",
	agent:   true,
	limit:   time.Minute,
	offline: true,
	ready:   all,
}

// rekindleAsWritten is the same with a policy that leaves pods as they are written: kubelet
// probes in their own period.
var rekindleAsWritten = benchCase{
	name:  "rekindle-offline-aswritten",
	agent: true,
	spec: &v1alpha1.NodeRecoverySpec{Offline: v1alpha1.Offline{
		ReadinessProbes: v1alpha1.ReadinessProbesAsWritten, ImagePullPolicy: v1alpha1.ImagePullAsWritten,
	}},
	limit:   time.Minute,
	offline: true,
	oneWay:  true,
	ready:   all,
}

// rekindleOnline is a node with the agent that has the API server in reach.
var rekindleOnline = benchCase{
	name:  "rekindle-online",
	agent: true,
	limit: 2 * time.Minute,
	ready: all,
}
