# Sees to what the tests need: installs it as root on Debian, says what to install elsewhere. "needs.sh suites" does it
# for Python's own tests, which `make suites` runs; PYTHON is whose they are.
set -eu

# command=package
wanted="bwrap=bubblewrap tmux=tmux vim=vim gdb=gdb strace=strace fish=fish zsh=zsh python3=python3 git=git gcc=gcc make=make bash=bash unshare=util-linux script=bsdutils setpriv=util-linux dlv=delve
cargo=cargo cmake=cmake javac=default-jdk-headless keytool=default-jre-headless node=nodejs npm=npm openssl=openssl ssh=openssh-client sshd=openssh-server perl=perl
sqlite3=sqlite3 chromium=chromium ps=procps dbus-daemon=dbus-daemon dbus-send=dbus-bin xdg-dbus-proxy=xdg-dbus-proxy qemu-system-x86_64=qemu-system-x86 qemu-img=qemu-utils lintian=lintian rpm=rpm"
wanted="$wanted nix-daemon=nix-bin busybox=busybox-static gpg=gnupg gpg-connect-agent=gpgconf gh=gh"
wanted="$wanted podman=podman skopeo=skopeo gnome-keyring-daemon=gnome-keyring crun=crun fuse-overlayfs=fuse-overlayfs newuidmap=uidmap"
wanted="$wanted pasta=passt slirp4netns=slirp4netns nft=nftables iptables=iptables curl=curl ip=iproute2 dig=bind9-dnsutils ping=iputils-ping"
# For virtual machines; their kernels are fetched by the test itself.
wanted="$wanted busybox=busybox-static mke2fs=e2fsprogs depmod=kmod cpio=cpio xz=xz-utils zstd=zstd sudo=sudo mkfs.xfs=xfsprogs mkfs.btrfs=btrfs-progs"
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
missing=
if [ "${1:-}" = suites ]; then
	wanted="setpriv=util-linux"
	python=${PYTHON:-/usr/bin/python3}
	# The package is named for the version, in every release. Some of its modules come with Python itself, not test_os.
	version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || version=
	if [ -z "$version" ]; then
		missing=" python3"
	elif ! "$python" -c 'import importlib.util as u; exit(u.find_spec("test.test_os") is None)' 2>/dev/null; then
		missing=" libpython$version-testsuite"
	fi
else
	# What is no command of that PATH: a module, a library, a server's programs.
	python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
	ls /usr/lib/*/libnss_wrapper.so >/dev/null 2>&1 || missing="$missing libnss-wrapper"
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
fi
for w in $wanted; do
	command -v "${w%%=*}" >/dev/null 2>&1 || missing="$missing ${w#*=}"
done
if [ -n "$missing" ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		echo "installing:$missing"
		log=$(mktemp)
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq >"$log" 2>&1 || true
		# One at a time: what one release lacks must not keep the others away.
		for p in $missing; do
			apt-get install -y -qq --no-install-recommends "$p" >>"$log" 2>&1 || { echo "could not be installed: $p"; tail -3 "$log"; }
		done
		rm -f "$log"
		[ "$missing" != " python3" ] || ! command -v "$python" >/dev/null || exec sh "$0" "$@" # now its version is known
	else
		echo "missing for some tests:$missing"
		echo "on Debian: apt-get install$missing"
		[ "${SBX_MUST_WORK:-}" != 1 ] || echo "SBX_MUST_WORK=1: those tests will fail"
	fi
fi

# A fresh /dev/fuse may be root's alone; the guarded project needs it as an ordinary user does.
if [ "$(id -u)" = 0 ]; then
	[ -e /dev/fuse ] || mknod /dev/fuse c 10 229 2>/dev/null || echo "no /dev/fuse here: tests of the gate cannot run"
	[ ! -e /dev/fuse ] || chmod 0666 /dev/fuse
elif [ ! -w /dev/fuse ]; then
	echo "/dev/fuse is not writable by you: tests of the gate cannot run (as root: chmod 0666 /dev/fuse)"
fi
