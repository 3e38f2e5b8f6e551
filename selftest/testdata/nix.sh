# Proves with a real nix-daemon that a sandbox can build, and nothing else with it. Run it as root of a mount namespace of its own:
# unshare -m sh nix.sh SBX UID HOME. It makes a root with a /nix of its own, so that of the host is not touched.
# Prints one line a check and exits 1 if one fails.
set -u
sbx=$1 uid=$2 home=$3
if [ "${4:-}" != inside ]; then
	new=$(mktemp -d) || exit 1
	mount --make-rprivate / && mount -t tmpfs none "$new" || exit 1
	for d in /*; do
		[ "$d" != /nix ] || continue
		if [ -L "$d" ]; then cp -a "$d" "$new$d"; elif [ -d "$d" ]; then mkdir "$new$d" && mount --rbind "$d" "$new$d" || exit 1; fi
	done
	mkdir -p "$new/nix/store" "$new/nix/var/nix" "$new/oldroot"
	chmod 755 "$new"
	cd "$new" && pivot_root . oldroot && umount -l /oldroot && rmdir /oldroot || exit 1
	# /etc/nix/nix.conf belongs to the host: an /etc of our own, with the same entries
	mkdir -p /nix/etc && cp -a /etc/. /nix/etc 2>/dev/null
	mkdir -p /nix/etc/nix && mount --bind /nix/etc /etc || exit 1
	exec sh "$0" "$@" inside
fi
work=$home/nix-work
mkdir -p "$work" && cd "$work" || exit 1
status=0
pass() { echo "pass: $1"; }
fail() { echo "FAIL: $1"; status=1; sed 's/^/    /' out err; }
check() { if eval "$2"; then pass "$1"; else fail "$1"; fi; }
user() { setpriv --reuid="$uid" --regid="$uid" --clear-groups env -i HOME="$home" USER=worker PATH="${sbx%/*}:/usr/bin:/bin" NIX_REMOTE=daemon "$@" >out 2>err </dev/null; }
conf() { printf 'build-users-group =\nsubstituters =\ntrusted-users = root %s\n%s\n' "$uid" "$1" >/etc/nix/nix.conf; }
start() {
	conf "$1"
	nix-daemon >daemon.log 2>&1 & daemon=$!
	n=0; until [ -S /nix/var/nix/daemon-socket/socket ] || [ $n -gt 300 ]; do sleep 0.1; n=$((n+1)); done
}
stop() { kill $daemon; wait $daemon 2>/dev/null; rm -f /nix/var/nix/daemon-socket/socket; }
# every file of the store with its content, and what the daemon has written down about it
store() { (cd /nix/store && find . -type f ! -name '.links*' ! -path './.links/*' -exec sha256sum {} +; ls -l | grep -v '^total'; for p in *-*; do [ ! -e "$p" ] || NIX_REMOTE= nix-store -q --hash --references "/nix/store/$p"; done) 2>/dev/null | sort; }
trap 'kill $daemon 2>/dev/null' EXIT

chown "$uid" . && : >out && : >err
start 'sandbox = true'
mkdir -p tools/bin && cp /bin/busybox tools/bin/sh
tools=$(nix-store --add tools)
drv() { # NAME TEXT [MORE]
	cat >"$1.nix" <<X
derivation { name = "$1"; system = builtins.currentSystem; builder = "\${builtins.storePath "$tools"}/bin/sh"; args = [ "-c" "$2" ]; $3 }
X
}
drv hello 'echo hello >$out' ''
drv other 'echo other >$out' ''
drv third 'echo third >$out' ''
drv fetched 'echo fetched >$out' "outputHashAlgo = \"sha256\"; outputHashMode = \"flat\"; outputHash = \"$(echo fetched | sha256sum | cut -c1-64)\";"
drv on-fetched 'read x <$from; echo $x >$out' 'from = import ./fetched.nix;'
hook=$work/hook marker=$work/marker
printf '#!/bin/sh\necho ran >%s\n' "$marker" >"$hook"; chmod 755 "$hook"

# Negative controls: outside, this user of the daemon's trust does all of it.
user nix-build --no-out-link other.nix --option post-build-hook "$hook"
check "control: outside the hook of a trusted user runs" '[ -e marker ]'
rm -f marker
drv doomed 'echo doomed >$out' ''
user nix-build --no-out-link doomed.nix; doomed=$(cat out)
user nix-store --delete "$doomed"
check "control: outside a path can be deleted" '[ -n "$doomed" ] && [ ! -e "$doomed" ]'
user nix-build --no-out-link doomed.nix
store >before

user sbx run --static --nix=off -- sh -c 'nix-build --no-out-link hello.nix; ls /nix/var/nix/daemon-socket/socket'
check "control: without --nix there is no daemon" '! grep -q "^/nix" out && grep -q "daemon-socket/socket.*No such file" err'
for how in '--static' ''; do
	rm -f result; user sbx run $how -- sh -c 'nix-build hello.nix && cat result && ls -d /nix/store'
	check "a build from inside${how:+ ($how)}, by itself" 'grep -qx hello out && [ "$(cat result)" = hello ]'
done
store >after
check "everything else in the store is as it was" '[ -z "$(comm -23 before after)" ] && [ -n "$(comm -13 before after)" ]'
check "what is new is the build alone" '! ls /nix/store | grep -v "tools\$\|hello\|other\|doomed\|^\.links"'
user nix-store --verify --check-contents; check "the daemon finds its store sound" '! grep -qi "modified\|disappeared\|missing" err'

user sbx run --static -- sh -c 'touch /nix/store/x; echo x >>'"$doomed"'; rm -rf /nix/store/*; nix-store --delete '"$doomed"'; nix-store --gc; nix-store --optimise; nix-store --verify --repair; nix-store --gc --print-roots'
check "the store is read-only inside" 'grep -q "/nix/store/x.*Read-only" err && [ -e "$doomed" ]'
check "deleting is refused and said" 'grep -q "does not let this sandbox collect garbage: it is maintenance" err && grep -q "blocked: \"collect garbage\" of the Nix daemon by nix\[[0-9]*\]" err'
check "optimising and repairing are refused" 'grep -q "sandbox optimise the store" err && grep -q "sandbox verify or repair" err'
check "roots are not told" 'grep -q "sandbox list garbage collector roots" err'
user sbx audit; check "it is in the audit" 'grep -q "grant .*daemon-socket/socket.* nix" out && grep -q "deny .*collect garbage" out && grep -q "deny .*optimise" out'
user sbx run --static -- nix-build --no-out-link third.nix --option post-build-hook "$hook" --option sandbox false
check "a trusted user's settings are dropped, with a word, and the build goes on" 'grep -q "warning: sbx does not pass the setting .post-build-hook. on" err && grep -q "blocked: \"set post-build-hook\"" err && grep -q "blocked: \"set sandbox\"" err && grep -q "third" out && [ ! -e marker ]'
user sbx run --static -- sh -c 'nix-build --no-out-link fetched.nix; nix-build --no-out-link on-fetched.nix'
check "without the network nothing is built that may use it" '! grep -q "^/nix" out && [ "$(grep -c "would use the network" err)" -ge 2 ]'
user sbx run --static --nix=fetch -- true; check "fetching without the network is refused" 'grep -q "fetch.*which this session does not have" err'
user nix-build --no-out-link fetched.nix
check "control: outside it is built" 'grep -q "^/nix.*fetched" out'
user sbx run --static -- nix-build --no-out-link on-fetched.nix
check "and on what is there already everybody may build" 'grep -q "^/nix.*on-fetched" out'
user sbx run --static -- sh -c 'ls -d ~/.cache && nix-instantiate --eval -E "builtins.readFile ./hello.nix" >/dev/null && touch ~/.cache/nix-test && mkdir -p ~/.cache/nix && touch ~/.cache/nix/x && echo cache'
check "the cache is usable" 'grep -qx cache out && [ ! -e "$home/.cache/nix/x" ]'
user sbx run --static --profile strict -- sh -c 'ls -d /nix/store'; check "the strict profile has none" 'grep -q "No such file" err'
user sbx run --static --profile strict --rw . --nix -- sh -c 'nix-build --no-out-link hello.nix'; check "unless it is asked for" 'grep -q "^/nix.*hello" out'
user sbx run --static --profile permissive --net none -- sh -c 'nix-build --no-out-link hello.nix; nix-store --gc'; check "the permissive profile has the filter too" 'grep -q "^/nix.*hello" out && grep -q "sandbox collect garbage" err'
user sbx run --gate notify --prompt deny -- sh -c 'nix-build --no-out-link hello.nix; nix-store --gc'; check "a session that looks at every call has it without a question" 'grep -q "^/nix.*hello" out && grep -q "sandbox collect garbage" err'
user sbx run --nix=off --socket /nix/var/nix/daemon-socket/socket -- true; check "the socket itself is refused" 'grep -q "refused: the Nix daemon builds and fetches outside" err'

# By configuration, as for every other store.
mkdir -p "$home/.config/sbx"
printf '[features]\nnix = false\n[[store]]\npath = "/nix/store"\nsocket = "/nix/var/nix/daemon-socket/socket"\n' >"$home/.config/sbx/config.toml"
user sbx run --static -- sh -c 'nix-build --no-out-link hello.nix; nix-store --gc'; check "a [[store]] has the filter too" 'grep -q "^/nix.*hello" out && grep -q "sandbox collect garbage" err'
rm -r "$home/.config/sbx"

# A daemon that does not confine builds is not given away by itself.
stop; start 'sandbox = false'
user sbx run --static -- sh -c 'nix-build --no-out-link hello.nix'; check "a daemon without a sandbox of its own is not granted by itself, and that is said" '! grep -q "^/nix" out && grep -q "nix: not granted by itself, as /etc/nix/nix.conf switches" err'
user sbx run --static --nix -- sh -c 'nix-build --no-out-link hello.nix'; check "asked for, it is a loss" 'grep -q "^/nix.*hello" out && grep -q "sbx: nix: .*switches the daemon.s own sandbox off" err'
user sbx run --strict --static --nix -- true; check "which --strict refuses" 'grep -q -- "--strict: .*nix: " err'
stop
user sbx run --static --nix -- true; check "no daemon is an error for those who ask" 'grep -q "no Nix daemon to talk to" err'
exit $status
