# A host where nothing is delegated and there is no systemd: sbx-helper, set-user-id, prepares control groups if helper.toml says so.
# "sh prepared.sh host" as root is the administrator, who does what the user leaves a note for; then as the user.
if [ "${1:-}" = host ]; then
	mkdir -p /etc/sbx /run/notes
	chmod 1777 /run/notes
	while sleep 0.2; do
		[ ! -e /run/notes/allow ] || { echo 'cgroups = "memory.max 134217728, pids.max 300, cpu.max 150000 100000"' >/etc/sbx/helper.toml; rm /run/notes/allow; }
		[ ! -e /run/notes/nousers ] || { echo 0 >/proc/sys/kernel/unprivileged_userns_clone; rm /run/notes/nousers; }
	done </dev/null >/dev/null 2>&1 &
	exit
fi
top=/sys/fs/cgroup/sbx
user=$top/42424
check() { if eval "$2"; then echo "pass: $1"; else echo "FAIL: $1"; sed 's/^/    /' out err; fi; }
ask() { : >/run/notes/$1; while [ -e /run/notes/$1 ]; do sleep 0.1; done; }
until_gone() { n=0; while [ -e "$1" ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n + 1)); done; [ ! -e "$1" ]; }
until_there() { n=0; while [ ! -e "$1" ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n + 1)); done; [ -e "$1" ]; }
bomb='x=[]
while True: x.append(bytearray(1<<20))'
mkdir -p ~/project && cd ~/project && : >out && : >err || exit 1

sbx run --memory 64M -- true >out 2>err
check "without a word of the administrator's nothing is prepared" "grep -q 'limits.memory.*cgroups = ' err && [ ! -e $top ]"
ask allow
sbx doctor >out 2>err
check "doctor knows" "grep -q '^ok *control groups .*sbx-helper prepares one' out"
sbx run --no-suid --memory 64M -- true >out 2>err
check "with --no-suid nothing is prepared" "grep -q 'limits.memory' err && [ ! -e $top ]"

session() { # how it is built
	own=$(cat /proc/self/cgroup)
	rm -f there
	sbx run -q --static --name one --memory 64M --pids 50 --cpu 50% -- sh -c 'touch there; sleep 600' >out 2>err & broker=$!
	until_there there
	check "$1: the session has a group with its limits" "[ \"\$(cat $user/own/sbx-one/memory.max $user/own/sbx-one/pids.max $user/own/sbx-one/cpu.max | tr '\n' ' ')\" = '67108864 50 50000 100000 ' ] && [ ! -s err ]"
	check "$1: what runs is in it, and only that" "[ \$(wc -l <$user/own/sbx-one/cgroup.procs) -ge 2 ] && grep -q '^0::/sbx/42424/own/sbx\$' /proc/$broker/cgroup && [ \"\$(cat /proc/self/cgroup)\" = '$own' ]"
	check "$1: the ceilings are root's" "[ \"\$(cat $user/memory.max $user/pids.max $user/cpu.max | tr '\n' ' ')\" = '134217728 300 150000 100000 ' ] && ! echo max 2>/dev/null >$user/memory.max && [ \$(stat -c %u $user) = 0 ]"
	check "$1: nobody leaves them, nobody is moved in" "! echo $broker 2>/dev/null >/sys/fs/cgroup/cgroup.procs && ! mkdir $user/x 2>/dev/null && ! echo $$ 2>/dev/null >$user/own/sbx/cgroup.procs"
	kill -9 $broker
	wait $broker 2>/dev/null
	check "$1: after kill -9 of the broker nothing is left" "until_gone $top"
	sbx run --static --memory 64M -- python3 -c "$bomb" >out 2>err; s=$?
	check "$1: a memory bomb is killed and explained ($s)" "[ $s = 137 ] && grep -q 'memory limit 64M reached by python3\[' err"
	sbx run --static --pids 40 --memory 64M -- python3 -c 'import os, time
try:
  while True:
    if os.fork() == 0: time.sleep(600)
except OSError: pass' >out 2>err; s=$?
	check "$1: a fork bomb is explained ($s)" "[ $s = 0 ] && grep -q 'limit of 40 processes reached' err"
	sbx run --static --memory 1G -- python3 -c "$bomb" >out 2>err; s=$?
	check "$1: the ceiling holds for what asks for more ($s)" "[ $s = 137 ]"
	check "$1: nothing is left" "until_gone $top"
}
session "user namespaces"
ask nousers
session "sbx-helper"
