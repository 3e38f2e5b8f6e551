# What labels cost: the same work in dynamic sessions that differ by the policy alone, in turn. In one no rule has a label; in one a rule has, and
# nothing that it labels is read; in one that was read, and what is read all the time lies there.
# bench_labels.sh DIR [USER COMMAND...]: DIR holds sbx and bench, and home, which belongs to the user. WORKS is how many rounds; with ONLY,
# a pattern, only what it matches is measured.
set -eu
here=$1
shift
home=$here/home
mkdir -p "$home/work" "$home/clients/a" "$home/none/sbx" "$home/unused/sbx" "$home/used/sbx"
cd "$home/work"
rule() { printf '[[rule]]\npath = "%s"\ndecision = "allow"\n' "$1"; }
{ echo 'version = 1'; rule '~/clients/**'; } >"$home/none/sbx/policy.toml"
{ cat "$home/none/sbx/policy.toml"; rule '~/theirs/**'; echo 'label = "theirs"'; } >"$home/unused/sbx/policy.toml"
{ cat "$home/none/sbx/policy.toml"; echo 'label = "clients"'; } >"$home/used/sbx/policy.toml"
for f in $(seq 100); do echo "$f" >"$home/clients/a/$f"; done
cat >imports.py <<'X'
import argparse, asyncio, ctypes, email.message, http.client, json, logging, multiprocessing, sqlite3, ssl, tempfile, unittest, urllib.request, xml.dom.minidom
X
cat >opens.py <<X
import os
for _ in range(2000):
    for f in range(1, 101):
        os.close(os.open("$home/clients/a/%d" % f, os.O_RDONLY))
X
cat >makes.py <<'X'
import os
for _ in range(2000):
    open("made", "w").close()
    os.remove("made")
X
echo "find /usr -xdev -printf '%s\\n' | tail -n 1" >tree.sh
[ "$(id -u)" != 0 ] || chown -R 42424:42424 "$home"
as() { env -i HOME="$home" PATH=/usr/bin:/bin "$@"; }
# Each has read one of the files before anything is measured.
there() { echo "env XDG_CONFIG_HOME=$home/$1 $here/sbx run -q --mode dynamic --ro $here/bench -- sh $home/work/begin.sh"; }
echo "cat $home/clients/a/1 >/dev/null; exec $here/bench -times" >begin.sh
for work in "find /usr -xdev, a stat each=sh tree.sh" "14 python imports=python3 imports.py" "200 000 opens there=python3 opens.py" \
	"4 000 changes in the project=python3 makes.py"; do
	echo "$work" | grep -qE "${ONLY:-.}" || continue
	as ${*:+"$@"} "$here/bench" -n "${WORKS:-15}" -warm 2 -elsewhere "$(there none)" -elsewhere "$(there unused)" -elsewhere "$(there used)" \
		"${work%%=*}=@${work#*=}" "a label, unused=@@${work#*=}" "a label, used=@@@${work#*=}"
done
echo start | grep -qE "${ONLY:-.}" || exit 0
as ${*:+"$@"} "$here/bench" -n "${N:-50}" "start=env XDG_CONFIG_HOME=$home/none $here/sbx run -q -- /bin/true" \
	"start, a label, unused=env XDG_CONFIG_HOME=$home/unused $here/sbx run -q -- /bin/true"
