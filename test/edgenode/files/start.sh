# First part of a boot, still in the machine's namespaces: join the node's cgroups
# and leave every namespace but the PID and time ones.
set -eu
for procs in $CGROUP_PROCS; do
	echo $$ >"$procs"
done
exec nsenter --net="/run/netns/$NETNS" \
	unshare --mount --propagation private --uts --ipc --cgroup bash "$FILES/mounts.sh"
