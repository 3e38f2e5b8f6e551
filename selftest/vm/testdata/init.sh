# Process 1 of the machine, which stops when this ends. It sets up what systemd and udev would: mounts with systemd's flags,
# control groups laid out and delegated as systemd 252 does, devices, settings, network. Then it runs /vm/script as the
# ordinary user; what that prints goes to the host line by line, and last "exit N".
set -eu
trap 'sync; echo b >/proc/sysrq-trigger; sleep 60' EXIT
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
userns=yes delegate=yes helper=none
. /vm/config

at() { mkdir -p "$2" 2>/dev/null || :; mount -t "$1" -o "$3" "$1" "$2"; }
at devtmpfs /dev nosuid
exec </dev/null >/dev/console 2>&1
at proc /proc nosuid,nodev,noexec
at sysfs /sys nosuid,nodev,noexec
at securityfs /sys/kernel/security nosuid,nodev,noexec
at cgroup2 /sys/fs/cgroup nosuid,nodev,noexec,nsdelegate,memory_recursiveprot
at devpts /dev/pts nosuid,noexec,gid=5,mode=620,ptmxmode=666
at tmpfs /dev/shm nosuid,nodev,mode=1777
at mqueue /dev/mqueue nosuid,nodev,noexec
at tmpfs /run nosuid,nodev,mode=755
mount --make-rshared /
[ "$(stat -c %u /etc/passwd)" = 0 ] || find / -xdev -exec chown -h 0:0 {} + 2>/dev/null || : # the disk was made by an ordinary user
chown -R 42424:42424 /home/tester
printf '#!/bin/sh\nexec /sbin/modprobe -d /kernel "$@"\n' >/run/modprobe
chmod 755 /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
ln -s /proc/self/fd /dev/fd
for i in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${i%:*}" "/dev/${i#*:}"; done
mkdir -p /dev/net # opening these devices loads their modules
[ -e /dev/net/tun ] || mknod -m 666 /dev/net/tun c 10 200
[ -e /dev/loop-control ] || mknod -m 660 /dev/loop-control c 10 237
[ -e /dev/fuse ] || mknod /dev/fuse c 10 229
chmod 666 /dev/fuse /dev/net/tun
hostname machine
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
echo 1 >/proc/sys/kernel/yama/ptrace_scope
[ $userns = yes ] || echo 0 >/proc/sys/kernel/unprivileged_userns_clone
ulimit -Hn 524288

# /usr is the host's and read-only; what is installed by hand has a place of this machine's.
mkdir -p /vm/local/upper /vm/local/work
mount -t overlay -o lowerdir=/usr/local,upperdir=/vm/local/upper,workdir=/vm/local/work local /usr/local
chown 0:0 /usr/local
chmod 755 /usr/local
rm -rf /usr/local/bin/sbx* /usr/local/lib/sbx /usr/local/libexec/sbx # another version, installed on the host
install -D -o 0 -g 0 -m 755 /vm/sbx /usr/local/bin/sbx
install -d -o 0 -g 0 -m 755 /usr/local/libexec /usr/local/libexec/sbx
install -o 0 -g 0 -m 755 /vm/sbx-host /usr/local/libexec/sbx/sbx-host
install -o 0 -g 0 -m 755 /vm/sbx-proxy /usr/local/libexec/sbx/sbx-proxy
install -o 0 -g 0 -m 755 /vm/sbx-probe /usr/local/libexec/sbx/sbx-probe
[ $helper = none ] || install -o 0 -g 0 -m $helper /vm/sbx-helper /usr/local/libexec/sbx/sbx-helper

# The user's command is in a session, which the user does not own, or below the user's service manager, which is theirs.
slice=user.slice/user-42424.slice
manager=$slice/user@42424.service
scope=$slice/session-1.scope
cd /sys/fs/cgroup
mkdir -p init.scope $scope $manager
echo 1 >init.scope/cgroup.procs
for group in . user.slice $slice; do echo '+cpu +io +memory +pids' >$group/cgroup.subtree_control; done
if [ $delegate = yes ]; then
	scope=$manager/app.slice/test.scope
	chown 42424 $manager $manager/cgroup.procs $manager/cgroup.threads $manager/cgroup.subtree_control
	setpriv --reuid=42424 --regid=42424 --clear-groups sh -ec 'cd "$1"; mkdir -p app.slice/test.scope
		for group in . app.slice; do echo "+cpu +memory +pids" >$group/cgroup.subtree_control; done' - $manager
fi

# A pipe gives the command an output that it can reopen, unlike the machine's port.
port=$(echo /dev/vport*p1)
mkfifo -m 666 /run/out
exec 3<>/run/out # so that it has an end only when all is over
cat /run/out >"$port" 3>&- & copy=$!
install -d -o 42424 -g 42424 -m 700 /run/user /run/user/42424
chmod 755 /run/user
read -r uptime rest </proc/uptime
echo "up after $uptime seconds" >/run/out # also says how fast this machine is; the port itself has one writer
cd /
[ ! -e /vm/before ] || sh /vm/before >/run/out 2>&1 3>&-
(
	echo 0 >/sys/fs/cgroup/$scope/cgroup.procs
	cd /home/tester
	exec setsid setpriv --reuid=42424 --regid=42424 --init-groups env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/home/tester \
		USER=tester LOGNAME=tester SHELL=/bin/bash LANG=C.UTF-8 TERM=xterm XDG_RUNTIME_DIR=/run/user/42424 sh /vm/script
) </dev/null >/run/out 2>&1 3>&- &
status=0
wait $! || status=$?
for process in /proc/[0-9]*; do # whatever still holds the pipe
	case $process in /proc/1 | /proc/$copy) ;; *) kill -9 "${process#/proc/}" 2>/dev/null || : ;; esac
done
exec 3>&-
wait $copy
echo "exit $status" >"$port"
