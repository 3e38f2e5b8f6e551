#!/bin/sh
# Installs, installs over, removes and purges the Debian packages of $1, then the RPMs, on a copy of this system's root that is
# thrown away. Run as root in a mount namespace of its own: packages.sh DIST ARCH WORK
set -eu
dist=$1 arch=$2 work=$3
mount --make-rprivate /
mount -t tmpfs none "$work"
mkdir "$work/upper" "$work/work" "$work/root" "$work/packages"
cp "$dist"/devcontainer-feature-sbx.tgz "$dist"/*_"$arch".deb "$dist"/*"$(uname -m)".rpm "$work/packages"
mount -t overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" none "$work/root"
mount --rbind /dev "$work/root/dev"
mount -t proc proc "$work/root/proc"
mount -t tmpfs none "$work/root/tmp"
mkdir "$work/root/tmp/packages"
cp "$work"/packages/* "$work/root/tmp/packages"
cat >"$work/root/tmp/inside.sh" <<'INSIDE'
set -eu
cd /tmp/packages
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
fail() { echo "packages.sh: $*" >&2; exit 1; }
# a program of that name that somebody put into /usr/local must not answer for the package's
rm -rf /usr/local/bin/sbx* /etc/sbx
# Debian's own index of all pages of the manual would be made anew at each step
rm -f /var/lib/man-db/auto-update
listing() { find /usr /etc /var/lib -xdev \( -path /var/lib/dpkg -o -path /etc/gshadow\* -o -path /etc/group\* -o -path /var/lib/rpm -o -path /usr/share/man/index.db -o -path /etc/.pwd.lock \) -prune -o -path '*sbx*' -print | sort; }
listing >/tmp/before
members="$(ls *.deb)"

step() { echo "== $*"; }
checks() {
	[ "$(stat -c '%a %U:%G' /usr/bin/sbx)" = "755 root:root" ] || fail "mode of sbx"
	[ "$(stat -c '%a %U:%G' /usr/libexec/sbx/sbx-helper)" = "755 root:root" ] || fail "the plain helper is not plain"
	[ "$(stat -c '%a %U:%G' /usr/libexec/sbx/sbx-helper-suid)" = "4750 root:sbx" ] || fail "mode of the set-user-id helper: $(stat -c '%a %U:%G' /usr/libexec/sbx/sbx-helper-suid)"
	[ "$(stat -c '%a %U:%G' /usr/libexec/sbx/sbx-helper-host-suid)" = "4750 root:sbx" ] || fail "mode of the other one: $(stat -c '%a %U:%G' /usr/libexec/sbx/sbx-helper-host-suid)"
	[ "$(stat -c '%a %U:%G' /usr/libexec/sbx/sbx-host)" = "755 root:root" ] || fail "mode of sbx-host"
	[ "$(stat -c '%a %U:%G' /usr/libexec/sbx/sbx-proxy)" = "755 root:root" ] || fail "mode of sbx-proxy"
	for p in "suid net" "suid group" "host-suid launch"; do # each has its own verbs alone
		status=0
		/usr/libexec/sbx/sbx-helper-$p </dev/null >/tmp/log 2>&1 || status=$?
		[ $status = 2 ] || fail "sbx-helper-$p: $status"
	done
	sbx version | grep -q '^sbx [0-9]' || fail "sbx does not run"
	for m in man1/sbx.1 man1/sbx-run.1 man5/sbx.toml.5 man5/sbx-policy.5 man8/sbx-helper.8 man8/sbx-host.8; do
		gzip -dc /usr/share/man/$m.gz | grep -q '^\.TH' || fail "no manual page $m"
	done
	[ -s /usr/share/bash-completion/completions/sbx ] || fail "no completion"
	[ ! -e /etc/sbx ] || fail "a package made /etc/sbx, which is the administrator's"
}

step dpkg: install
dpkg -i --force-depends $members >/tmp/log 2>&1 || { cat /tmp/log; fail "install"; }
checks
step dpkg: install over, with an override of the administrator
dpkg-statoverride --update --add root root 0700 /usr/libexec/sbx/sbx-helper-suid
dpkg -i --force-depends $members >/tmp/log 2>&1 || { cat /tmp/log; fail "install over"; }
[ "$(stat -c %a /usr/libexec/sbx/sbx-helper-suid)" = 700 ] || fail "the administrator's mode was lost"
dpkg-statoverride --remove /usr/libexec/sbx/sbx-helper-suid
dpkg -i --force-depends $members >/tmp/log 2>&1 || { cat /tmp/log; fail "install over"; }
checks
step dpkg: remove keeps what is configuration
dpkg -r sbx-helper-suid sbx-helper sbx >/tmp/log 2>&1 || { cat /tmp/log; fail "remove"; }
[ ! -e /usr/bin/sbx ] && [ ! -e /usr/libexec/sbx ] || fail "remove left programs"
[ -e /etc/apparmor.d/sbx ] || fail "remove took the configuration"
step dpkg: purge leaves nothing
dpkg -P sbx-helper-suid sbx-helper sbx >/tmp/log 2>&1 || { cat /tmp/log; fail "purge"; }
listing >/tmp/after
diff /tmp/before /tmp/after || fail "purge left files"

step a development container: the feature
mkdir /tmp/feature && tar -C /tmp/feature -xzf devcontainer-feature-sbx.tgz
grep -q '"version": "[0-9]' /tmp/feature/devcontainer-feature.json || fail "no version"
sh /tmp/feature/install.sh >/tmp/log 2>&1 && tail -n 1 /tmp/log | grep -q '^sbx [0-9]' || { cat /tmp/log; fail "the feature"; }
dpkg -P sbx >/tmp/log 2>&1 || { cat /tmp/log; fail "purge"; }
listing >/tmp/after
diff /tmp/before /tmp/after || fail "the feature left files"

if command -v rpm >/dev/null; then
	step rpm: install and erase
	mkdir /tmp/rpmdb
	rpm --dbpath /tmp/rpmdb -i --nodeps ./*.rpm >/tmp/log 2>&1 || { cat /tmp/log; fail "rpm install"; }
	checks
	rpm --dbpath /tmp/rpmdb -U --force --nodeps ./*.rpm >/tmp/log 2>&1 || { cat /tmp/log; fail "rpm install over"; }
	checks
	rpm --dbpath /tmp/rpmdb -e --nodeps sbx-helper-suid sbx-helper sbx >/tmp/log 2>&1 || { cat /tmp/log; fail "rpm erase"; }
	listing >/tmp/after
	diff /tmp/before /tmp/after || fail "rpm left files"
fi
echo done
INSIDE
exec chroot "$work/root" /bin/sh /tmp/inside.sh
