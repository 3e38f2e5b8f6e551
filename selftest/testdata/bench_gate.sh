# What granted paths cost inside a dynamic session, native and inside in turn, with each engine; then the broker's memory with 200 grafts.
# bench_gate.sh DIR GO [USER COMMAND...]: DIR holds sbx and bench, and home, which belongs to the user. With ONLY, a pattern, only what it
# matches is measured (of find, git, python, warm, cold, npm, opens, stats, notify and grafts); WORKS is how many rounds.
set -eu
here=$1 go=$2 from=$(cd "$(dirname "$0")" && pwd); shift 2
home=$here/home
as() { env -i HOME="$home" PATH="$(dirname "$go"):/usr/bin:/bin" GOPROXY=off GOTOOLCHAIN=local "$@"; }
wanted() { echo "$1" | grep -qE "${ONLY:-.}"; }
mkdir -p "$home/work/many" "$home/work/hello" "$home/read/a/b" "$home/trees" "$home/rw/npm/parts"
cd "$home/work"
[ -e many/.git ] || ! wanted git || for d in $(seq 200); do mkdir -p many/$d; for f in $(seq 100); do echo $f >many/$d/$f; done; done
[ -e many/.git ] || ! wanted git || (cd many && git init -q . && git add . && git -c user.name=a -c user.email=a@example.org commit -qm x)
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
# in a tree that is granted for writing: a compiler's cache that is empty, and an installation of twenty packages of a hundred files
echo "rm -rf $home/rw/cache; cd hello && GOCACHE=$home/rw/cache go build -o hello ." >cold.sh
echo "cd $home/rw/npm && rm -rf node_modules package-lock.json && npm install --offline --no-audit --no-fund --loglevel error --cache $home/rw/npmcache" >npm.sh
deps=
for i in $(seq 20); do
	p=$home/rw/npm/parts/package; rm -rf "$p"; mkdir -p "$p"
	for f in $(seq 100); do echo "module.exports = $f" >"$p/$f.js"; done
	echo '{"name": "p'$i'", "version": "1.0.0"}' >"$p/package.json"
	tar -C "$home/rw/npm/parts" -czf "$home/rw/npm/p$i.tgz" package
	deps="$deps${deps:+, }\"p$i\": \"file:p$i.tgz\""
done
echo "{\"name\": \"all\", \"version\": \"1.0.0\", \"dependencies\": {$deps}}" >"$home/rw/npm/package.json"
[ "$(id -u)" != 0 ] || chown -R 42424:42424 "$home"
[ $# = 0 ] || export HOME="$home"
for work in "find /usr -xdev, a stat each=sh tree.sh" "git status, 20 000 files=sh status.sh" "14 python imports=python3 imports.py" \
	"go build, warm=sh build.sh" "go build, cold=sh cold.sh" "npm install, offline=sh npm.sh" "300 000 opens in /usr=python3 opens.py" "300 000 stats below skeletons=python3 stats.py"; do
	wanted "$work" || continue
	[ "$work" != "npm install, offline=sh npm.sh" ] || command -v npm >/dev/null || { echo "npm install: left out, there is no npm"; continue; }
	as ${*:+"$@"} "$here/bench" -n "${WORKS:-15}" -warm 2 -elsewhere "$here/sbx run -q --mode dynamic --gate gatefs --ro $here/bench --ro $home/read --rw $home/rw --env GOPROXY --env GOTOOLCHAIN -- $here/bench -times" \
		"$work" "the same, inside=@${work#*=}"
done
# The notification engine beside the least that one can be, in C (notify.c).
if ! wanted notify; then :; elif cc -O2 -o "$here/notify" "$from/notify.c" 2>/dev/null; then
	sed s/300000/20000/ opens.py >opens20.py
	for work in "find /usr, a stat each=sh tree.sh" "git status=sh status.sh" "14 python imports=python3 imports.py" "go build, warm=sh build.sh" "20 000 opens=python3 opens20.py"; do
		as ${*:+"$@"} "$here/bench" -n "${WORKS:-15}" -warm 2 -elsewhere "$here/sbx run -q --mode dynamic --gate notify --ro $here/bench --env GOPROXY --env GOTOOLCHAIN -- $here/bench -times" \
			"$work" "supervised in C=$here/notify ${work#*=}" "sbx, notify=@${work#*=}"
	done
else
	echo "supervised in C: left out, missing: cc and the kernel's headers"
fi
wanted grafts || exit 0
# Grafts: each directory that is listed is mounted.
as ${*:+"$@"} "$here/sbx" run -q --mode dynamic --gate gatefs --prompt allow --name bench-grafts -- sh -c 'for i in $(seq 200); do ls ~/trees/$((i / 5))/$i >/dev/null; done; grep -c trees /proc/self/mountinfo; echo ready >ready; sleep 12' &
n=0; until [ -e ready ] || [ $n -gt 600 ]; do sleep 0.1; n=$((n+1)); done
sleep 5
[ "$(id -u)" != 0 ] || for p in $(pgrep -f "^$here/sbx run.*bench-grafts"); do echo "process $p: $(awk '/^Pss:/ {print $2, $3}' /proc/$p/smaps_rollup) PSS with 200 grafts"; done
wait
