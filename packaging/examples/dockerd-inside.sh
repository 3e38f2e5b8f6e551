#!/bin/sh
# A command beside a Docker daemon of its own, in a sandbox:
#
#     sbx run --containers -- sh dockerd-inside.sh docker build --network host .
#
# Docker's own dockerd-rootless.sh does not work there: its rootlesskit gets rights by executing itself again as root of the namespace
# that it made, and nothing in a sandbox gains rights by executing (no_new_privs). unshare keeps those that it has in a namespace of its own.
# Needs dockerd, containerd, docker, crun, and unshare of util-linux 2.38. Containers have no network; images come by docker load or docker import.
set -eu
dir=$(mktemp -d)
data=${XDG_DATA_HOME:-$HOME/.local/share}/containers
[ -w "$data" ] || data=/run/sbx/containers
[ -w "$data" ] || data=$dir
export DOCKER_HOST="unix://$dir/docker.sock" DOCKER_BUILDKIT=0 DOCKER_CONFIG="$dir/config" PATH="$PATH:/usr/sbin:/sbin"
mkdir "$dir/state" "$dir/home"
uid=$(id -u) gid=$(id -g)
unshare --map-users=auto --map-groups=auto --map-root-user --mount --net --pid --fork --mount-proc sh -c '
	mount -t tmpfs none /run
	export HOME="$1/home" XDG_RUNTIME_DIR="$1" ROOTLESSKIT_STATE_DIR="$1/state" ROOTLESSKIT_PARENT_EUID=$3 ROOTLESSKIT_PARENT_EGID=$4
	exec dockerd --rootless -H "unix://$1/docker.sock" --data-root "$2/docker" --exec-root "$1/exec" --pidfile "$1/pid" --storage-driver overlay2 \
		--exec-opt native.cgroupdriver=cgroupfs --add-runtime crun="$(command -v crun)" --default-runtime crun \
		--bridge=none --iptables=false --ip6tables=false --ip-forward=false --userland-proxy=false' - "$dir" "$data" "$uid" "$gid" >"$dir/log" 2>&1 &
n=0
until docker version >/dev/null 2>&1; do
	n=$((n + 1))
	if [ $n -gt 300 ] || ! kill -0 $! 2>/dev/null; then
		echo "dockerd did not start:" >&2
		tail -n 5 "$dir/log" >&2
		exit 1
	fi
	sleep 0.1
done
"$@"
