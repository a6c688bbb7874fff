# Last part, as PID 1 and with clocks at zero.
set -eu
# /proc is still the machine's, so this is the pid that the machine knows us by.
read -r pid _ </proc/self/stat
echo "$pid" >"$BOOT/pid1"
cd "$ROOT"
mount -t proc proc proc
mount --bind "$BOOT/boot_id" proc/sys/kernel/random/boot_id
# kubelet sets these; the machine's own must stay as they are.
(cd "$FILES/sysctl" && find . -type f) | while read -r file; do
	[ -e "proc/sys/$file" ] && mount --bind "$FILES/sysctl/$file" "proc/sys/$file"
done
mount --make-rprivate /
pivot_root . .
umount -l .
cd /
# What systemd does on a machine but leaves undone in a container; mounts of volumes need it.
mount --make-rshared /
# The clock is the machine's: nothing on the node may set it.
exec setpriv --bounding-set=-sys_time --inh-caps=-sys_time \
	env -i container=rekindle-test PATH=/usr/sbin:/usr/bin SYSTEMD_LOG_TARGET=journal \
	/usr/lib/systemd/systemd </dev/null
