#!/bin/sh
# Proves on a host with delegated version 2 control groups that limits hold and are explained, and that nothing is left.
# Run it as an ordinary user of such a host: sh cgroup.sh /path/to/sbx. Prints one line a check and exits 1 if one fails.
set -u
sbx=$1
status=0
own=$(sed -n 's/^0:://p' /proc/self/cgroup)
work=$(mktemp -d "$HOME/cgroup-XXXXXX"); cd "$work" || exit 1
pass() { echo "pass: $1"; }
fail() { echo "FAIL: $1"; status=1; [ ! -s err ] || sed 's/^/    /' err; }
check() { if eval "$2"; then pass "$1"; else fail "$1"; fi; }
groups() { find /sys/fs/cgroup -name 'sbx-*' 2>/dev/null; }

"$sbx" run --dry-run -v --memory 64M -- true >out 2>err
if grep -q '^loss .*limits.memory' out; then echo "missing: a delegated control group with a memory controller"; grep '^loss' out; exit 3; fi
check "the plan names the limits" "grep -q '^control    memory.max 67108864' out && grep -q '^control    pids.max 4096' out"
"$sbx" run -q --name seen -- cat /proc/self/cgroup >out 2>err
check "inside, the group is the root" "[ \"\$(sed -n 's/^0:://p' out)\" = / ]"
"$sbx" run -q --name held -- sh -c 'echo ready; sleep 900' >out 2>err & held=$!
n=0; until grep -q ready out || [ $n -gt 600 ]; do sleep 0.1; n=$((n+1)); done
dir=$(groups | grep sbx-held)
check "the session has a group of its own with its processes" "[ -n '$dir' ] && [ \$(wc -l <'$dir/cgroup.procs') -ge 2 ] && [ '$(dirname "$dir")' != /sys/fs/cgroup ]"
check "the broker is not in it" "! grep -qx $held '$dir/cgroup.procs'"
check "default limits are written" "[ \"\$(cat '$dir/pids.max')\" = 4096 ] && [ \"\$(cat '$dir/memory.oom.group')\" = 1 ] && [ \"\$(cat '$dir/cpu.weight' 2>/dev/null || echo 50)\" = 50 ] && [ \"\$(cat '$dir/memory.max')\" != max ]"
n=0; until "$sbx" freeze held 2>/dev/null || [ $n -gt 600 ]; do sleep 0.1; n=$((n+1)); done
check "frozen by its group, and said" "[ \"\$(cat '$dir/cgroup.freeze')\" = 1 ] && \"$sbx\" ls | grep -q '^held .*frozen (control group)'"
"$sbx" exec held -- true 2>err; s=$?
check "nothing is started in it" "[ $s = 125 ] && grep -q frozen err"
"$sbx" thaw held 2>err
check "thawed, it goes on" "[ \"\$(cat '$dir/cgroup.freeze')\" = 0 ] && [ \"\$(\"$sbx\" exec held -- echo on 2>err)\" = on ]"
"$sbx" freeze held
kill -9 $held; wait $held 2>/dev/null
n=0; until [ -z "$(cat "$dir/cgroup.procs" 2>/dev/null)" ] || [ $n -gt 300 ]; do sleep 0.1; n=$((n+1)); done
check "a killed broker's session has ended" "[ -z \"\$(cat '$dir/cgroup.procs' 2>/dev/null)\" ]"
n=0; while [ -n "$(groups)" ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n+1)); done
check "and its group is no more" "[ -z \"\$(groups)\" ]"

# A memory bomb, also by way of a tmpfs, ends that session only and is explained.
"$sbx" run --memory 64M -- tail /dev/zero 2>err; s=$?
check "memory bomb: killed ($s)" "[ $s = 137 ]"
check "memory bomb: explained with the process" "grep -q 'memory limit 64M reached by tail\[[0-9]*\].*--memory' err"
"$sbx" run --memory 64M -- dd if=/dev/zero of=/dev/shm/fill bs=1M count=500 2>err; s=$?
check "memory bomb in a tmpfs: killed ($s)" "[ $s = 137 ] && grep -q 'memory limit 64M reached' err"
"$sbx" run --memory 64M -- dd if=/dev/zero of=/dev/null bs=20M count=1 status=none 2>err
check "control: what fits runs" "[ $? = 0 ] && ! grep -q 'limit' err"
# Who makes namespaces inside can mount the group that it is in and write to what is the user's there: the kernel keeps
# the topmost group from the first namespace of groups alone.
cat >attack.sh <<'E'
mkdir /tmp/g && mount -t cgroup2 none /tmp/g && mkdir /tmp/g/one && echo $$ >/tmp/g/one/cgroup.procs || exit 5
exec unshare --cgroup sh -c 'echo 7 >/tmp/g/cgroup.max.depth; cat /tmp/g/cgroup.max.depth; echo max >/tmp/g/memory.max
	dd if=/dev/zero of=/dev/null bs=300M count=1'
E
"$sbx" run --nested --memory 64M -- unshare -Urm --cgroup sh attack.sh >out 2>err; s=$?
check "control: of the group that is seen with --nested a limit can be changed" "grep -qx 7 out"
check "memory bomb with --nested: killed ($s)" "[ $s = 137 ] && grep -q 'memory limit 64M reached' err"
# A fork bomb comes to the limit; the host goes on.
"$sbx" run --pids 64 --timeout 300s -- sh -c 'i=0; while [ $i -lt 100 ]; do sleep 900 & i=$((i+1)); done; wait' >out 2>err
check "fork bomb: explained" "grep -q 'limit of 64 processes reached' err"
# A processor hog gets its share.
"$sbx" run --cpu 20% -- sh -c 'read t x </proc/uptime; timeout 3 sh -c "while :; do :; done"; read u x </proc/uptime; times; echo $t $u' 2>err |
	awk -F'[ms ]' 'NR == 2 { used = $1 * 60 + $2 } NR == 3 { printf "%d\n", 100 * used / ($2 - $1) }' >out # a held back timeout is late
check "processor share of 20 %: $(cat out) %" "[ \"\$(cat out)\" -le 35 ]"
check "processor share: explained" "grep -q 'processor limit of 20% reached (held back for .* s); raise it with --cpu' err"
# Zombies and many processes: the end is quick, nothing stays.
"$sbx" run -q -- sh -c 'i=0; while [ $i -lt 500 ]; do true & i=$((i+1)); done; exec true' 2>err
check "500 zombies" "[ $? = 0 ]"
"$sbx" run -q --memory 64M --strict -- true 2>err
check "--strict is content" "[ $? = 0 ]"
check "nothing is left in /sys/fs/cgroup" "[ -z \"\$(groups)\" ]"
check "this shell is where it was" "[ \"\$(sed -n 's/^0:://p' /proc/self/cgroup)\" = '$own' ]"
cd / && rm -rf "$work"
exit $status
