# Start-up of sbx and of bubblewrap, interleaved in one run, as an ordinary user; then approvals over the socket.
set -eu
top=$1 go=$2
command -v bwrap >/dev/null || { echo "missing: bwrap (apt-get install bubblewrap)"; exit 1; }
above=$HOME
[ "$(id -u)" != 0 ] || above=/home # where an ordinary user can go
here=$(mktemp -d "$above/sbx-bench-XXXXXX")
trap 'rm -rf "$here"' EXIT
chmod 755 "$here"
mkdir -p "$here/home/project"
cp "$top/bin/sbx" "$here/sbx"
(cd "$top" && CGO_ENABLED=0 "$go" build -trimpath -o "$here/bench" ./selftest/bench &&
	CGO_ENABLED=0 "$go" build -trimpath -buildvcs=false -tags sbx_plain -o "$here/sbx-plain" ./broker)
user=
if [ "$(id -u)" = 0 ]; then
	chown -R 42424:42424 "$here/home"
	user="setpriv --reuid 42424 --regid 42424 --clear-groups"
fi
cd "$here/home/project"
as() { env -i HOME="$here/home" PATH=/usr/bin:/bin $user "$@"; }
set -- "unshare=unshare --map-current-user --user --mount --pid --fork --net --ipc --uts --cgroup /bin/true"
# A session for exec: the one that is asked belongs to the sbx that asks, as the others do.
for sbx in sbx sbx-plain; do as "$here/$sbx" run --detach --name "$sbx" --profile strict --static -q -- sleep 86400; done
as "$here/bench" -n "${N:-200}" \
	"bwrap=bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp /bin/true" \
	"sbx permissive=$here/sbx run --profile permissive --net none --static -q -- /bin/true" \
	"sbx moderate=$here/sbx run --profile moderate --static -q -- /bin/true" \
	"sbx strict=$here/sbx run --profile strict --static -q -- /bin/true" \
	"sbx dynamic=$here/sbx run -q -- /bin/true" \
	"sbx exec=$here/sbx exec sbx -- /bin/true" \
	"without faststart, moderate=$here/sbx-plain run --profile moderate --static -q -- /bin/true" \
	"without faststart, dynamic=$here/sbx-plain run -q -- /bin/true" \
	"without faststart, exec=$here/sbx-plain exec sbx-plain -- /bin/true" \
	"$@"
for sbx in sbx sbx-plain; do as "$here/$sbx" kill "$sbx"; done
# A message to an MCP server and back.
as "$here/bench" -messages "${MESSAGES:-1000}" "cat=cat" "sbx mcp -- cat=$here/sbx mcp -- cat"
# The helper's way, beside the ordinary one: only root can make, for one process, a host without user namespaces.
if [ "$(id -u)" = 0 ]; then
	mkdir "$here/aside"
	cp "$top/bin/sbx-helper" "$here/"
	(cd "$top" && "$go" test -c -o "$here/launcher" ./selftest)
	env -i HOME="$here/home" PATH=/usr/bin:/bin "$here/bench" -n "${N:-200}" \
		-elsewhere "$here/launcher -without-user-namespaces 42424 4755 $here/sbx-helper $here/bench -times" \
		"sbx strict=setpriv --reuid 42424 --regid 42424 --clear-groups $here/sbx run --profile strict --static -q -- /bin/true" \
		"the same, sbx-helper=@setpriv $here/sbx run --profile strict --static -q -- /bin/true"
else
	echo "sbx-helper: left out, as only root can install it set-user-id"
fi
for gate in gatefs notify; do
	env -i HOME="$here/home" PATH=/usr/bin:/bin $user "$here/bench" -first "${FIRST:-1000}" -gate $gate -sbx "$here/sbx"
done
# The least that a first access can cost, in C (first.c).
if cc -O2 -o "$here/first" "$top/selftest/testdata/first.c" 2>/dev/null; then
	$user mkdir "$here/home/least"
	$user "$here/first" "${FIRST:-1000}" "$here/home/least" || echo "in C, the least: left out, it cannot serve a file system here"
	rm -rf "$here/home/least"
else
	echo "in C, the least: left out, missing: cc and the kernel's headers"
fi
sh "$top/selftest/testdata/bench_gate.sh" "$here" "$go" $user
sh "$top/selftest/testdata/bench_project.sh" "$here" "$go" $user
sh "$top/selftest/testdata/bench_second.sh" "$here" "$go" $user
sh "$top/selftest/testdata/bench_labels.sh" "$here" $user
# sbx-proxy beside the library's own proxy and the direct way, on one processor.
(cd "$top" && "$go" test -c -o "$here/proxied" ./proxy)
for round in 1 2 3; do
	"$here/proxied" -test.run '^$' -test.cpu 1 -test.bench Ways/request -test.benchtime 3000x
	"$here/proxied" -test.run '^$' -test.cpu 1 -test.bench Ways/bulk -test.benchtime 8x
done
# How the host fares under bombs in a sandbox.
env -i HOME="$here/home" PATH=/usr/bin:/bin $user python3 "$top/selftest/testdata/responsive.py" "$here/sbx" "${ROUNDS:-3}"
