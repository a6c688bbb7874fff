package main

import "time"

// nativeOffline is a plain node that is cut off: kubelet never hears of its pods.
var nativeOffline = benchCase{
	name:    "native-offline",
	limit:   time.Minute,
	offline: true,
	ready:   none,
}
