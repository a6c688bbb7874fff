// Package edgenode runs real edge nodes on one machine: each in PID, mount,
// network, UTS, IPC, cgroup and time namespaces of its own, with the
// distribution's systemd as PID 1 and real unit files for containerd, kubelet,
// kube-proxy and the agent.
//
//	n, err := edgenode.New(ctx, c, edgenode.Options{Name: "edge-1"})
//	boot, err := n.Boot(ctx)
//	err = n.WaitReady(ctx)            // the API server says so, of this boot
//	err = n.CutWAN(ctx, edgenode.WANBlackhole)
//	err = n.PowerCut(ctx)             // what was not synced is gone
//	boot, err = n.Boot(ctx)
//	w, err := boot.Witness()          // what kubelet's and containerd's logs say
//
// # Time
//
// CLOCK_BOOTTIME and CLOCK_MONOTONIC of a node start at zero at each Boot, and the
// boot id is new. Boot.Zero is that zero on the wall clock: "kernel start" in every
// figure.
//
// # Disk
//
// The root file system is an ext4 image on a loop device; /usr is the machine's,
// read-only; /run and /tmp are empty at each boot. PowerCut kills every process,
// shuts the file system down without writing anything back, copies the image as it
// then is, and the next boot mounts the copy. Logs that witness a boot (Boot.Logs)
// lie outside of the image and take no part in this.
//
// # End
//
// The cluster's Stop ends its nodes. A run that died is cleaned up by the next one.
package edgenode
