# Makes what a machine is started with from a stock Debian kernel, which is downloaded and unpacked, not installed:
#   sh kernel.sh SUITE DIR
# DIR then holds vmlinux, initrd.img (busybox and the modules without which there is no root file system) and root, with
# all modules and debian.tar. It appears whole or not at all; one that is there is kept. Exits with 3 if the mirror cannot be had.
set -eu
suite=$1 dir=$2
[ ! -e "$dir" ] || exit 0
PATH=$PATH:/usr/sbin:/sbin
new=$dir.$$
rm -rf "$new"; mkdir -p "$new"; cd "$new"
trap 'rm -rf "$new"' EXIT

# An apt of our own, so that the host's lists, pins and state stay as they are. What the host says of proxies and passwords holds.
mkdir -p apt/etc/apt/preferences.d apt/var/lib/apt/lists/partial apt/var/cache/apt/archives/partial
apt() {
	tool=$1; shift
	"$tool" -q -o Dir="$new/apt" -o Dir::Etc::netrc=/etc/apt/auth.conf -o Dir::Etc::netrcparts=/etc/apt/auth.conf.d \
		-o Dir::State::status=/dev/null -o APT::Sandbox::User=root -o Acquire::Retries=3 "$@"
}
# from MIRROR SUITE makes that its only source.
from() {
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $1 $2 main" >apt/etc/apt/sources.list
	apt apt-get -o APT::Update::Error-Mode=any update
}
# The first of the mirrors that the host has its own packages from which has this suite.
mirror=
for m in ${SBX_VM_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Component: main' | awk '!seen[$0]++')}; do
	if from "$m" "$suite"; then mirror=$m; break; fi
done
[ -n "$mirror" ] || { echo "no mirror in this machine's package sources has $suite" >&2; exit 3; }
names=$(apt apt-cache depends --important --recurse linux-image-amd64 | grep -E '^linux-(image|base|binary|modules)-[0-9]') # newer ones are in parts
apt apt-get download $names || exit 3
for deb in ./*.deb; do dpkg -x "$deb" root; done
[ -e root/lib ] || ln -s usr/lib root/lib
# A parser that can write rules about user namespaces (4.0) and its C library, where this release has none.
case $suite in *-backports)
	mkdir parser
	from "$mirror" "${suite%-backports}" || exit 3
	(cd parser && apt apt-get download apparmor libc6) || exit 3
	for deb in parser/*.deb; do dpkg -x "$deb" root/apparmor; done
	rm -rf parser ;;
esac
# A root file system of Debian packages, for containers: what a shell needs, and a program.
mkdir rootfs packages
(cd packages && apt apt-get download base-files busybox-static dash hello libc6) || exit 3
(cd rootfs && mkdir -p usr/bin usr/sbin usr/lib usr/lib64 && ln -s usr/bin usr/sbin usr/lib usr/lib64 .)
for deb in packages/*.deb; do dpkg --fsys-tarfile "$deb" | tar -C rootfs -x --keep-directory-symlink --no-same-owner; done
ln -sf dash rootfs/usr/bin/sh
for a in id cat ls sleep seq head; do ln -sf busybox rootfs/usr/bin/$a; done
tar -C rootfs --owner=0 --group=0 -cf root/debian.tar .
chmod -R u+w rootfs
rm -rf rootfs packages
version=$(ls root/lib/modules)
depmod -b root "$version"

# QEMU can start the kernel proper, which saves an emulated machine its slow decompression.
image=$(find root -name 'vmlinuz*')
cp "$image" vmlinux
for packing in 'xz=\xfd7zXZ\x00' 'zstd=\x28\xb5\x2f\xfd'; do
	offset=$(LC_ALL=C grep -aboPm1 "${packing#*=}" "$image" | head -n1 | cut -d: -f1)
	[ -n "$offset" ] || continue
	tail -c +$((offset + 1)) "$image" | "${packing%%=*}" -dc >unpacked 2>/dev/null || :
	if head -c4 unpacked | grep -q ELF; then mv unpacked vmlinux; break; fi
done

# The names of the modules give the order in which they are loaded.
mkdir -p initrd/bin initrd/dev initrd/modules initrd/root
n=1000
modprobe -d "$new/root" -S "$version" -a --show-depends virtio_pci virtio_blk virtio_console virtio_net ext4 9pnet_virtio 9p |
	sed -n 's/^insmod //p' | awk '!seen[$0]++' >modules
while read -r module; do
	n=$((n + 1))
	xz -dcf "$module" >initrd/modules/$n.ko
done <modules
cp "$(command -v busybox)" initrd/bin/busybox
cat >initrd/init <<'INIT'
#!/bin/busybox sh
busybox mount -t devtmpfs dev /dev
for module in /modules/*; do busybox insmod $module; done
busybox mount -t ext4 /dev/vda /root
for tag in usr kernel; do busybox mount -t 9p -o trans=virtio,ro,cache=loose,msize=262144 $tag /root/$tag; done
busybox umount /dev
exec busybox switch_root /root /bin/sh /vm/init.sh
INIT
chmod +x initrd/init
(cd initrd && find . | cpio --quiet -o -H newc) >initrd.img
echo "$version" >version
rm -rf apt initrd ./*.deb unpacked modules
cd /
mkdir -p "$(dirname "$dir")"
mv -T "$new" "$dir" 2>/dev/null || [ -e "$dir/initrd.img" ] # somebody else may have been faster
