package main

import (
	"context"
	"time"
)

// nativeOnline is a plain node with the API server in reach.
var nativeOnline = benchCase{
	name:    "native-online",
	prepare: func(ctx context.Context, r *rig) error { return r.node.RestoreWAN(ctx) },
	limit:   2 * time.Minute,
	ready:   all,
}
