# What granted paths cost inside a dynamic session, native and inside in turn, with each engine; then the broker's memory with 200 grafts.
# bench_gate.sh DIR GO [USER COMMAND...]: DIR holds sbx and bench, and home, which belongs to the user.
set -eu
here=$1 go=$2; shift 2
home=$here/home
as() { env -i HOME="$home" PATH="$(dirname "$go"):/usr/bin:/bin" GOPROXY=off GOTOOLCHAIN=local "$@"; }
mkdir -p "$home/work/many" "$home/work/hello" "$home/read/a/b" "$home/trees"
cd "$home/work"
for d in $(seq 200); do mkdir -p many/$d; for f in $(seq 100); do echo $f >many/$d/$f; done; done
(cd many && git init -q . && git add . && git -c user.name=a -c user.email=a@example.org commit -qm x)
printf 'module example.org/hello\n\ngo 1.21\n' >hello/go.mod
printf 'package main\n\nfunc main() { print("hello") }\n' >hello/main.go
echo x >"$home/read/a/b/f"
for i in $(seq 200); do mkdir -p "$home/trees/$((i / 5))/$i"; echo x >"$home/trees/$((i / 5))/$i/f"; done
cat >imports.py <<'X'
import argparse, asyncio, ctypes, email.message, http.client, json, logging, multiprocessing, sqlite3, ssl, tempfile, unittest, urllib.request, xml.dom.minidom
X
cat >opens.py <<'X'
import os
for _ in range(300000): os.close(os.open("/usr/bin/env", os.O_RDONLY))
X
cat >stats.py <<X
import os
for _ in range(300000): os.stat("$home/read/a/b/f")
X
cat >tree.sh <<X
find /usr -xdev -printf '%s\n' | tail -n 1
X
echo 'cd many && git status' >status.sh
echo 'cd hello && go build -o hello .' >build.sh
[ "$(id -u)" != 0 ] || chown -R 42424:42424 "$home"
[ $# = 0 ] || export HOME="$home"
for work in "find /usr -xdev, a stat each=sh tree.sh" "git status, 20 000 files=sh status.sh" "14 python imports=python3 imports.py" \
	"go build, warm=sh build.sh" "300 000 opens in /usr=python3 opens.py" "300 000 stats below skeletons=python3 stats.py"; do
	as ${*:+"$@"} "$here/bench" -n "${WORKS:-15}" -warm 2 -elsewhere "$here/sbx run -q --mode dynamic --gate gatefs --ro $here/bench --ro $home/read --env GOPROXY --env GOTOOLCHAIN -- $here/bench -times" \
		"$work" "the same, inside=@${work#*=}"
done
# The notification engine beside the least that one can be, in C (notify.c).
if cc -O2 -o "$here/notify" "$(dirname "$0")/notify.c" 2>/dev/null; then
	sed s/300000/20000/ opens.py >opens20.py
	for work in "find /usr, a stat each=sh tree.sh" "git status=sh status.sh" "14 python imports=python3 imports.py" "go build, warm=sh build.sh" "20 000 opens=python3 opens20.py"; do
		as ${*:+"$@"} "$here/bench" -n "${WORKS:-15}" -warm 2 -elsewhere "$here/sbx run -q --mode dynamic --gate notify --ro $here/bench --env GOPROXY --env GOTOOLCHAIN -- $here/bench -times" \
			"$work" "supervised in C=$here/notify ${work#*=}" "sbx, notify=@${work#*=}"
	done
else
	echo "supervised in C: left out, missing: cc and the kernel's headers"
fi
# Grafts: each directory that is listed is mounted.
as ${*:+"$@"} "$here/sbx" run -q --mode dynamic --gate gatefs --prompt allow --name bench-grafts -- sh -c 'for i in $(seq 200); do ls ~/trees/$((i / 5))/$i >/dev/null; done; grep -c trees /proc/self/mountinfo; echo ready >ready; sleep 12' &
n=0; until [ -e ready ] || [ $n -gt 600 ]; do sleep 0.1; n=$((n+1)); done
sleep 5
[ "$(id -u)" != 0 ] || for p in $(pgrep -f "^$here/sbx run.*bench-grafts"); do echo "process $p: $(awk '/^Pss:/ {print $2, $3}' /proc/$p/smaps_rollup) PSS with 200 grafts"; done
wait
