# Makes the initial file system of a guest that says what it is and what it reaches, and switches itself off: sh guest.sh KERNEL-DIR FILE
set -eu
dir=$1 out=$2
PATH=$PATH:/usr/sbin:/sbin
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
mkdir "$new/bin" "$new/dev" "$new/modules" "$new/proc"
n=1000
modprobe -d "$dir/root" -S "$(cat "$dir/version")" -a --show-depends virtio_pci virtio_net | sed -n 's/^insmod //p' | awk '!seen[$0]++' >"$new/list"
while read -r module; do
	n=$((n + 1))
	xz -dcf "$module" >"$new/modules/$n.ko"
done <"$new/list"
cp "$(command -v busybox)" "$new/bin/busybox"
cat >"$new/init" <<'INIT'
#!/bin/busybox sh
busybox mount -t devtmpfs dev /dev
busybox mount -t proc proc /proc
for module in /modules/*; do busybox insmod $module; done
echo "HELLO FROM $(busybox uname -sr)" >/dev/ttyS0
if busybox ip link set eth0 up; then
	busybox ip address add 10.0.2.15/24 dev eth0
	busybox ip route add default via 10.0.2.2
	# 10.0.2.2 is what QEMU itself has as 127.0.0.1
	for port in $(busybox sed -n 's/.* ports=\([0-9,]*\).*/\1/p' /proc/cmdline | busybox tr , ' '); do
		echo "PORT $port: $(busybox nc -w 20 10.0.2.2 $port </dev/null 2>/dev/null)" >/dev/ttyS0
	done
fi
echo "GOOD BYE" >/dev/ttyS0
busybox sleep 1
busybox poweroff -f
INIT
chmod +x "$new/init"
rm "$new/list"
(cd "$new" && find . | cpio --quiet -o -H newc) >"$out"
