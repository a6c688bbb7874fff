# Second part: what the kernel, an initramfs and fstab give a machine.
set -eu
hostname "$NODE"
cd "$ROOT"
mount --bind -o ro /usr usr
# The machine's own units must not start: systemd sees the few that a node needs.
mount --bind -o ro "$FILES/units" usr/lib/systemd/system
mount --bind -o ro "$TOOLS" opt/edge/bin
mount --bind local-bin usr/local/bin
mount --bind "$LOGS" var/log/witness
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp

mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
if [ "$CGROUP_V1" ]; then
	mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
	for tree in $CGROUP_V1; do
		name=${tree%%:*} options=${tree#*:}
		mkdir "sys/fs/cgroup/$name"
		if [ "$options" ]; then
			mount -t cgroup -o "$options" cgroup "sys/fs/cgroup/$name"
		else
			mount -t cgroup2 cgroup2 "sys/fs/cgroup/$name"
		fi
	done
	# A joint tree ("cpu,cpuacct") is also looked for under each of its names.
	for tree in $CGROUP_V1; do
		name=${tree%%:*}
		for part in ${name//,/ }; do
			[ -e "sys/fs/cgroup/$part" ] || ln -s "$name" "sys/fs/cgroup/$part"
		done
	done
else
	mount -t cgroup2 cgroup2 sys/fs/cgroup
fi

mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty kmsg fuse; do
	[ -e "/dev/$device" ] || continue
	touch "dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm dev/mqueue
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
mount -t mqueue mqueue dev/mqueue
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr

# The parent says when the second has come at which the node's clocks are zero.
echo ready >&3
exec 3>&-
read -r boottime monotonic
exec unshare --pid --fork --kill-child --time --boottime "-$boottime" --monotonic "-$monotonic" \
	bash "$FILES/init.sh"
