package main

import (
	"context"
	"time"
)

// nativeOffline is a plain node that is cut off: kubelet never hears of its pods.
var nativeOffline = benchCase{
	name:    "native-offline",
	prepare: func(ctx context.Context, r *rig) error { return r.node.CutWAN(ctx, r.wan) },
	limit:   time.Minute,
	offline: true,
	ready:   none,
}
