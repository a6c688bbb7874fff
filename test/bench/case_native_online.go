package main

import "time"

// nativeOnline is a plain node with the API server in reach.
var nativeOnline = benchCase{
	name:  "native-online",
	limit: 2 * time.Minute,
	ready: all,
}
