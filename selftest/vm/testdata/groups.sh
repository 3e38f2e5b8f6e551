# Proves on a host with delegated control groups that OCI bundles inside have limits of their own, that those of the session hold above
# them, and that nothing inside lifts these. Run it as an ordinary user with subordinate ids: sh groups.sh. Prints one line a check and exits 1 if one fails.
set -u
status=0
pass() { echo "pass: $1"; }
fail() { echo "FAIL: $1"; status=1; sed 's/^/    /' out err; }
check() { if eval "$2"; then pass "$1"; else fail "$1"; fi; }
groups() { find /sys/fs/cgroup -name 'sbx-*' 2>/dev/null; }
inside() { sbx run -q --static --containers "$@" >out 2>err; }
mkdir -p project && cd project && : >out && : >err || exit 1
mkdir -p rootfs/bin
cp "$(command -v busybox)" rootfs/bin/busybox
for a in sh cat id dd sleep grep; do ln -s busybox rootfs/bin/$a; done
cat >bundle.py <<'X'
# An OCI bundle with limits: bundle.py COMMAND MEMORY PIDS
import json, os, subprocess, sys
os.makedirs("/tmp/b", exist_ok=True)
os.chdir("/tmp/b")
if not os.path.exists("config.json"):
    subprocess.run(["crun", "spec", "--rootless"], check=True)
c = json.load(open("config.json"))
c["process"]["terminal"] = False
c["process"]["args"] = ["sh", "-c", sys.argv[1]]
c["root"]["path"] = os.environ["HOME"] + "/project/rootfs"
c["linux"]["resources"] = {"memory": {"limit": int(sys.argv[2]) << 20}, "pids": {"limit": int(sys.argv[3])}, "cpu": {"quota": 50000, "period": 100000}}
c["linux"]["cgroupsPath"] = "/containers/one"
c["linux"]["namespaces"] = [n for n in c["linux"]["namespaces"] if n["type"] != "cgroup"] + [{"type": "cgroup"}]
json.dump(c, open("config.json", "w"))
sys.exit(subprocess.run(["crun", "--root", "/tmp/crun", "--cgroup-manager", "cgroupfs", "run", "one"]).returncode)
X
cat >limits.sh <<'X'
c() { python3 bundle.py "$@"; echo "status $?"; }
c 'cd /sys/fs/cgroup; cat memory.max pids.max cpu.max /proc/self/cgroup' 64 20
c 'dd if=/dev/zero of=/dev/null bs=200M count=1; echo alive $?' 64 20
c 'dd if=/dev/zero of=/dev/null bs=200M count=1 && echo room' 400 20
c 'i=0; while [ $i -lt 30 ]; do sleep 30 & i=$((i+1)); done' 64 10 2>&1
find /sys/fs/cgroup -name one | wc -l
X
cat >escape.py <<'X'
# Tries to lift the limits from inside, as the program and as root of a nested namespace.
import os, sys
def put(p, v):
    try:
        with open(p, "w") as f: f.write(v)
        return "ok"
    except OSError as e:
        return e.strerror
for d, _, files in os.walk("/sys/fs/cgroup"):
    for f in files:
        if f.endswith(".max") and not f.startswith("cgroup."):
            put(d + "/" + f, "max")
print("above:", os.path.realpath("/sys/fs/cgroup/.."), put("/sys/fs/cgroup/../memory.max", "max"))
print("topmost:", put("/sys/fs/cgroup/memory.max", "max"), "moved:", put("/sys/fs/cgroup/cgroup.procs", str(os.getpid())))
made = 0
try:
    for made in range(2000): os.mkdir("/sys/fs/cgroup/m%d" % made)
except OSError as e:
    print("groups:", made, e.strerror)
X

sbx run --dry-run -v --static --containers -- true >out 2>err
if grep -q '^loss *limits of single' out; then echo "missing: delegated control groups"; grep '^loss' out; exit 3; fi
check "the plan hands controllers down" "grep -q '^control *handed down: .*cpu.*memory.*pids' out && grep -q '^mount *bind */sys/fs/cgroup .*inside rw' out"
sbx run -q --strict --static --containers -- true >out 2>err; check "nothing is lost, so --strict is content" "[ $? = 0 ]"
inside -- sh -c 'cat /proc/self/cgroup; cat /sys/fs/cgroup/cgroup.subtree_control; mkdir /sys/fs/cgroup/mine && ls /sys/fs/cgroup/mine'
check "process 1 is in a leaf of a group of the sandbox's own" "grep -qx '0::/init' out && grep -q 'cpu.*memory pids' out && grep -qx memory.max out && grep -qx pids.max out"
sbx run --static --containers -- sh limits.sh >out 2>err
check "a container has the limits it was given, and a namespace of its own" "[ \"\$(head -4 out | tr '\n' ' ')\" = '67108864 20 50000 100000 0::/ ' ]"
check "a memory bomb ends in its container" "grep -q '^alive 137' out"
check "control: with room it runs" "grep -qx room out"
check "a fork bomb ends in its container" "grep -q \"can't fork\|Resource temporarily\" out err"
check "nothing of the containers is left" "[ \"\$(tail -1 out)\" = 0 ]"
check "the session is not said to have come to its limit" "! grep -q 'limit.*reached' err"
inside --memory 300M --pids 200 -- sh -c 'python3 escape.py; unshare -Urm -C python3 escape.py; exec python3 -c "x=[]
while True: x.append(bytearray(1<<20))"'; s=$?
check "what holds the session cannot be lifted inside: killed ($s)" "[ $s = 137 ] && grep -q 'above: /sys/fs ' out && grep -q '^groups: 9.* ' out"
sbx run --static --containers --memory 300M -- python3 -c 'x=[]
while True: x.append(bytearray(1<<20))' >out 2>err
check "and it is said" "grep -q 'memory limit 300M reached' err"
sbx run --static --containers --timeout 20s -- sh -c 'echo 1 >/sys/fs/cgroup/init/cgroup.freeze; echo went on' >out 2>err; s=$?
check "a session that froze itself ends in time ($s)" "[ $s = 124 ] && [ ! -s out ]"
inside -- unshare -Urm -C sh -c 'mkdir /tmp/c && mount -t cgroup2 none /tmp/c && ls /tmp/c'
check "who mounts control groups inside finds their own" "grep -qx cgroup.procs out && ! grep -q 'slice\|sbx-\|inside' out"
check "nothing is left" "[ -z \"\$(groups)\" ]"
exit $status
