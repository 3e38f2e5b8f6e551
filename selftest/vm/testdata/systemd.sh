# A host with systemd and nothing delegated to the user's session: sbx asks the user's systemd for a scope over D-Bus.
# "sh systemd.sh" as root starts systemd in namespaces of its own, for the machine's process 1 is another; the rest it runs itself.
case ${1:-start} in
start)
	echo "+cpu +memory +pids +io" >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p /sys/fs/cgroup/machine /etc/systemd/system/default.target.d /run/systemd/system
	for unit in systemd-udevd systemd-timesyncd systemd-journal-flush systemd-udev-trigger systemd-modules-load systemd-sysctl systemd-random-seed systemd-remount-fs \
		systemd-machine-id-commit systemd-update-utmp networking apparmor keyboard-setup console-setup kmod-static-nodes modprobe@configfs modprobe@drm modprobe@efi_pstore modprobe@fuse \
		systemd-tmpfiles-setup-dev systemd-sysusers ifupdown-pre dev-hugepages.mount sys-kernel-config.mount sys-fs-fuse-connections.mount e2scrub_reap; do
		case $unit in *.mount) ;; *) unit=$unit.service ;; esac
		ln -sf /dev/null "/etc/systemd/system/$unit"
	done
	cat >/etc/systemd/system/show.target <<-'E'
		[Unit]
		Requires=show.service
	E
	cat >/etc/systemd/system/show.service <<-'E'
		[Unit]
		Requires=dbus.socket
		After=dbus.socket
		[Service]
		Type=oneshot
		ExecStart=/bin/sh /vm/systemd.sh inside
		ExecStopPost=/bin/systemctl --no-block exit 0
	E
	# An emulated machine on a busy host takes its time.
	mkdir -p /etc/systemd/system.conf.d
	printf '[Manager]\nDefaultTimeoutStartSec=20min\n' >/etc/systemd/system.conf.d/patient.conf
	[ -s /etc/machine-id ] || echo 0123456789abcdef0123456789abcdef >/etc/machine-id
	# systemd's own group must hold nobody else, or it can share out nothing.
	container=other unshare --pid --fork --mount --kill-child sh -c 'echo 0 >/sys/fs/cgroup/machine/cgroup.procs; exec unshare --cgroup sh -c "
			umount /sys/fs/cgroup; mount -t cgroup2 -o nosuid,nodev,noexec,nsdelegate cgroup2 /sys/fs/cgroup
			mount -t proc proc /proc
			exec /lib/systemd/systemd --unit=show.target --log-target=console --log-level=warning --show-status=no"' >/dev/console 2>&1
	;;
inside) # a service of systemd's
	exec >/run/out 2>&1
	systemctl start user@42424.service || { echo "FAIL: no service manager for the user"; systemctl status user@42424.service; journalctl -n 40; }
	# What an ssh session is: below the user's slice, and root's.
	systemd-run --quiet --scope --slice=user-42424.slice --unit=session-9 setpriv --reuid=42424 --regid=42424 --init-groups env -i PATH=/usr/local/bin:/usr/bin:/bin \
		HOME=/home/tester USER=tester LANG=C.UTF-8 XDG_RUNTIME_DIR=/run/user/42424 sh /vm/systemd.sh user
	;;
user)
	mkdir -p ~/project && cd ~/project || exit 1
	groups() { find /sys/fs/cgroup -name 'sbx-*' 2>/dev/null; }
	check() { if eval "$2"; then echo "pass: $1"; else echo "FAIL: $1"; sed 's/^/    /' out err; groups; fi; }
	echo "own: $(cat /proc/self/cgroup)"
	check "nothing is delegated here" "! mkdir /sys/fs/cgroup\$(sed -n 's/^0:://p' /proc/self/cgroup)/x 2>/dev/null"
	sbx doctor | grep 'control groups'
	mkfifo ~/go
	sbx run --name one --memory 64M --cpu 50% -- sh -c 'cat /proc/self/cgroup; read x' <>~/go >out 2>err & broker=$!
	n=0; until grep -q '^0::' out || ! kill -0 $broker 2>/dev/null || [ $n -gt 300 ]; do sleep 0.3; n=$((n + 1)); done
	cat err
	dir=$(groups | grep 'sbx-one$')
	echo "group: $dir"; cat /proc/$broker/cgroup
	check "the broker is in a scope of its own" "grep -q '/sbx-one.scope/' /proc/$broker/cgroup"
	check "the session's group is beside it, with its limits" "[ \"\$(cat $dir/memory.max)\" = 67108864 ] && [ \"\$(cat $dir/cpu.max)\" = '50000 100000' ]"
	check "nothing is lost" "[ ! -s err ]"
	check "systemd knows the scope as delegated" "[ \"\$(systemctl --user show -P Delegate sbx-one.scope)\" = yes ]"
	echo >~/go
	wait $broker
	n=0; while [ -n "$(groups)" ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n + 1)); done
	check "nothing of it is left" "[ -z \"\$(groups)\" ] && ! systemctl --user list-units --all --no-legend 'sbx-*' | grep -q ."
	sbx run --memory 64M -- python3 -c 'bytearray(1<<30)' >out 2>err; s=$?
	check "memory bomb: killed and explained ($s)" "[ $s = 137 ] && grep -q 'memory limit 64M reached' err"
	sbx run --name two --memory 64M -- sleep 900 >out 2>err & broker=$!
	n=0; until groups | grep -q 'sbx-two$' || ! kill -0 $broker 2>/dev/null || [ $n -gt 300 ]; do sleep 0.3; n=$((n + 1)); done
	sleep 1; kill -9 $broker
	n=0; while [ -n "$(groups)" ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n + 1)); done
	check "killed, it leaves nothing either" "[ -z \"\$(groups)\" ]"
	;;
esac
