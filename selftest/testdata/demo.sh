# The demonstration: real work in a sandbox, then what is blocked there. Everything happens in a
# directory that is removed at the end; as root it is done as an ordinary user.
set -eu
top=$1 sbx=$2
above=$HOME
[ "$(id -u)" != 0 ] || above=/home # where an ordinary user can go
here=$(mktemp -d "$above/sbx-demo-XXXXXX")
trap 'chmod -R u+w "$here" 2>/dev/null; rm -rf "$here"' EXIT
chmod 755 "$here"
gocache=$(go env GOMODCACHE) goroot=$(go env GOROOT)
mkdir -p "$here/bin" "$here/home/project" "$here/home/.ssh" "$here/home/.cache"
cp "$sbx" "$here/bin/sbx"
echo "PRIVATE KEY" >"$here/home/.ssh/id_ed25519"
echo "# cloning $top"
if ! git -c safe.directory='*' clone -q "file://$top" "$here/home/project/sbx" 2>/dev/null; then
	mkdir -p "$here/home/project/sbx"
	tar -C "$top" --exclude=.git --exclude=bin -cf - . | tar -C "$here/home/project/sbx" -xf -
fi
# The modules are downloaded once, outside; the sandbox has no network.
(cd "$here/home/project/sbx" && go mod vendor -o "$here/home/project/sbx/vendor")
user=
if [ "$(id -u)" = 0 ]; then
	chown -R 42424:42424 "$here/home"
	user="setpriv --reuid 42424 --regid 42424 --clear-groups"
fi
run() {
	(cd "$here/home/project/sbx" && env -i HOME="$here/home" PATH="$goroot/bin:/usr/bin:/bin" GOCACHE="$here/home/.cache/go-build" GOFLAGS=-mod=vendor CGO_ENABLED=0 GOTOOLCHAIN=local \
		$user "$here/bin/sbx" run --profile moderate --static --ro "$goroot" "$@")
}
try() {
	what=$1
	shift
	printf '\n$ %s\n' "$what"
	run -q -- "$@" 2>&1 | head -3 || true
}
echo "# building and testing it inside: profile moderate, static, no network"
run -- sh -ec 'go version; go build -trimpath -buildvcs=false -o /tmp/sbx ./broker; ls -l /tmp/sbx; go test ./broker/plan ./audit ./broker/internal/host ./broker/internal/session'
echo
echo "# what is blocked there"
try 'cat ~/.ssh/id_ed25519' cat "$here/home/.ssh/id_ed25519"
try 'cat /proc/self/root/.../.ssh/id_ed25519' cat "/proc/self/root$here/home/.ssh/id_ed25519"
try 'touch /usr/bin/evil' touch /usr/bin/evil
try 'touch ~/.evil' sh -c 'touch ~/.evil && echo "written, into a file system of the sandbox: the host has no such file"'
[ ! -e "$here/home/.evil" ] || echo "BROKEN: the host's home was written"
try 'connect to 192.0.2.1' bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'
try 'unshare --user true' unshare --user true
try 'ps: who else is there' sh -c 'ls -d /proc/[0-9]* | wc -l; cat /proc/1/environ'
printf '\n# afterwards nothing is left but the record of each session:\n'
ls "$here/home/.local/state/sbx/sessions" | wc -l
