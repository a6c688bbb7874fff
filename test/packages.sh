#!/bin/sh
# Installs the Debian packages that a test node needs and that are missing. Does nothing
# (and needs neither root nor a network) when all are there.
set -eu
packages='runc containernetworking-plugins iptables iproute2 conntrack kmod util-linux e2fsprogs systemd dbus busybox'
missing=
for p in $packages; do
	dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
echo "installing Debian packages:$missing"
if [ "$(id -u)" != 0 ]; then
	echo "needs root to install them; or run: sudo apt-get install --no-install-recommends$missing" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# No service of a package may start on this machine: only inside the test nodes.
apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 $missing >/dev/null
