# Runs sbx in containers that rootless podman starts: with its own profile, with one like Docker's, as a pod of Kubernetes
# has it, as a job of CI has it, and with the options that sbx doctor names. sh podman.sh SBX DIR [OPTION of podman run...]
# as an ordinary user; DIR is an empty directory. Nothing is pulled: the root file system holds this machine's /usr.
# Prints one line a check and exits 1 if one fails.
set -u
sbx=$1 dir=$2
shift 2
more=$*
cd "$dir" || exit 1
status=0
check() { if eval "$2"; then echo "pass: podman: $1"; else echo "FAIL: podman: $1"; status=1; sed 's/^/    /' out err; fi; }
# container [OPTION...] -- COMMAND...: what it prints is in out and err, its status in got
container() {
	options=
	while [ "$1" != -- ]; do options="$options $1"; shift; done
	shift
	podman unshare rm -rf project/dist project/told && mkdir -m 777 project/told
	podman run --rm --network none $more $options -v /usr:/usr:ro -v "$dir/opt:/opt:ro" -v "$dir/project:/work" -w /work \
		-e PATH=/opt:/usr/local/bin:/usr/bin:/bin --rootfs "$dir/rootfs" "$@" >out 2>err </dev/null
	got=$?
}
# told NAME: out and err are what one step of a container's printed, and got its status
told() { cat "project/told/$1.out" >out; cat "project/told/$1.err" >err; got=$(cat "project/told/$1.status" 2>&1); }
mkdir -p opt project/.git project/test rootfs/usr rootfs/etc rootfs/tmp rootfs/dev rootfs/proc rootfs/sys rootfs/run rootfs/root/.ssh \
	rootfs/work rootfs/opt rootfs/data rootfs/var/tmp
cp "$sbx" opt/sbx
chmod 1777 rootfs/tmp rootfs/var/tmp
for d in bin sbin lib lib64; do [ -d "/$d" ] && ln -s "usr/$d" "rootfs/$d"; done
cp -r /etc/ld.so.cache /etc/alternatives rootfs/etc 2>/dev/null
printf 'root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n' >rootfs/etc/passwd
printf 'root:x:0:\nnode:x:1000:\n' >rootfs/etc/group
echo notes >rootfs/data/notes
cat >project/package.json <<'X'
{"name": "sums", "version": "1.0.0", "scripts": {"build": "node build.js", "pretest": "npm run build", "test": "node --test"}}
X
cat >project/build.js <<'X'
const fs = require('fs')
fs.mkdirSync('dist', {recursive: true})
fs.writeFileSync('dist/sums.js.new', 'exports.add = (a, b) => a + b\n')
fs.renameSync('dist/sums.js.new', 'dist/sums.js')
X
cat >project/test/sums.test.js <<'X'
const test = require('node:test'), assert = require('assert'), fs = require('fs'), os = require('os'), path = require('path')
const {execFileSync} = require('child_process')
test('adds', () => assert.strictEqual(require('../dist/sums.js').add(2, 3), 5))
test('another process', () => assert.strictEqual(execFileSync('sh', ['-c', 'echo from $((40 + 2))']).toString(), 'from 42\n'))
test('temporary files', () => fs.rmSync(fs.mkdtempSync(path.join(os.tmpdir(), 'x')), {recursive: true}))
X
cat >project/probe.sh <<'X'
cat /data/notes && echo "read it"
echo x >>/data/notes && echo "wrote it"
mkdir -p .git/hooks && echo x >.git/hooks/pre-commit && echo "made a hook"
umask 027; echo x >made; stat -c 'mode %a' made; rm -f made .git/hooks/pre-commit
true
X
(cd project && git init -q . && rm -rf .git/hooks && mkdir .git/hooks)
chmod -R a+rwX project rootfs/data
cat >opt/all.sh <<'X'
step() { name=$1; shift; "$@" >told/$name.out 2>told/$name.err; echo $? >told/$name.status; }
step filter grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status
step unshare unshare true
step outside sh probe.sh
step tests sbx run -- npm test
step probe sbx run -q -- sh probe.sh
step session sh -c 'sbx run -q -d --name one -- sleep 1000; sbx ls; sbx exec one -- sh -c "echo in \$SBX_SID"; sbx kill one'
step twice sbx run -q -- sbx run -- true
step doctor sbx doctor
X
# works NAME OPTION...: the project's tests pass, and what must not be is refused. What else is looked at by told.
works() {
	name=$1
	shift
	container "$@" -- sh /opt/all.sh
	check "$name: the container starts ($got)" '[ $got = 0 ]'
	told outside
	check "$name: outside of a sandbox, the control" 'grep -qx "read it" out && grep -qx "made a hook" out && grep -qx "mode 640" out'
	told tests
	check "$name: a project's tests pass ($got)" '[ $got = 0 ] && grep -q "^# pass 3$" out && grep -q "^# fail 0$" out && [ -s project/dist/sums.js ]'
	told probe
	check "$name: what is not granted is refused ($got)" '[ $got = 0 ] && ! grep -q "it$\|hook$" out && grep -qx "mode 640" out && grep -q "notes: Permission denied" err && grep -q "cannot create .git/hooks/pre-commit" err'
	told session
	check "$name: a session runs on, is found and ended" 'grep -q "^one  *running" out && grep -qx "in one" out'
}

works "podman's own profile"
told filter
check "podman has set its filter" 'grep -q "^Seccomp:.2$" out'
told tests
check "podman's own profile: what is lost is said" 'grep -q "^sbx: absence: .*sandbox.backend = landlock" err && ! grep -q "^sbx: host name" err'
told twice
check "podman's own profile: no sandbox in that one, which is said ($got)" '[ $got = 125 ] && grep -q "in a sandbox already" err'
told doctor
check "podman's own profile: sbx doctor names the options" 'grep -q "landlock  *auto" out && grep -q "fix: .* of podman: --security-opt unmask=ALL --device /dev/fuse;" out'

docker="--security-opt seccomp=$dir/docker.json"
node - <<'X'
// As Docker's own: what podman's lets pass less what takes CAP_SYS_ADMIN and the like there; clone without namespaces.
const fs = require('fs'), p = JSON.parse(fs.readFileSync('/usr/share/containers/seccomp.json'))
const no = ('bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick kcmp keyctl add_key request_key lookup_dcookie mount ' +
	'mount_setattr move_mount open_tree open_by_handle_at perf_event_open pidfd_getfd pivot_root process_madvise quotactl ' +
	'quotactl_fd setdomainname sethostname setns syslog umount umount2 unshare userfaultfd').split(' ')
for (const r of p.syscalls) r.names = r.names.filter(n => !no.includes(n))
p.syscalls = p.syscalls.filter(r => r.names.length)
p.syscalls.push({names: ['clone'], action: 'SCMP_ACT_ALLOW', args: [{index: 0, value: 0x7e020000, valueTwo: 0,
	op: 'SCMP_CMP_MASKED_EQ'}]}, {names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: 38})
p.defaultErrnoRet = 1
delete p.defaultErrno
fs.writeFileSync('docker.json', JSON.stringify(p))
X
works "a job of CI, with a profile like Docker's" $docker -e CI=true -e GITHUB_ACTIONS=true -e HOME=/github/home
told unshare
check "a profile like Docker's refuses unshare ($got)" '[ $got = 1 ]'
told doctor
check "a profile like Docker's: sbx doctor names the options" 'grep -q "fix: .* of podman: .*unmask=ALL --security-opt seccomp=unconfined" out'

pod="--security-opt no-new-privileges --cap-drop ALL --read-only --read-only-tmpfs=false --user 12345:0 --passwd=false -e KUBERNETES_SERVICE_HOST=10.0.0.1"
container $pod -e HOME=/ -- sh -c 'id -un; touch /tmp/x; touch "$HOME/x"'
check "a pod has no name and no place for files" '! grep -q "^[a-z]" out && [ "$(grep -c "Read-only" err)" = 2 ]'
works "a pod with HOME=/" $pod -e HOME=/
told filter
check "a pod has no privilege" 'grep -q "^NoNewPrivs:.1" out'
told doctor
check "a pod: sbx doctor names the options, and where records are" 'grep -q "landlock  *auto" out && grep -q "fix: .*of kubernetes: hostUsers: false and securityContext.procMount: Unmasked" out && grep -q "^ok *records  */dev/shm/sbx-12345/.* since no home can be written" out'
works "a pod with a place for temporary files and Docker's profile" $pod $docker -e HOME=/nowhere --tmpfs /tmp
container $pod -- env -u HOME sbx run -q -- sh -c 'node build.js && echo built'
check "a pod without HOME ($got)" '[ $got = 0 ] && grep -qx built out'

# What sbx doctor names gives the native backend: what is not granted is absent, and sandboxes in it narrow.
all="--security-opt unmask=ALL --device /dev/fuse"
works "with doctor's options" $all
told tests
check "with doctor's options: only the host name is lost" 'grep -q "^sbx: host name: " err && ! grep "absence\|sockets\|late secrets" err'
told doctor
check "with doctor's options: sbx doctor says so" 'grep -q "native  *auto" out && grep -q "^LOSS *host name" out'
container $all --user node -e HOME=/tmp -- sbx run -q --static --nested --ro /data -- sh -c 'cat /data/notes
	sbx run -q -- sh -c "cat /data/notes || echo narrowed; npm test"; sbx run -q --rw /data -- sh -c "echo x >>/data/notes" || echo not wider'
check "with doctor's options: a sandbox inside narrows ($got)" '[ $got = 0 ] && head -n 1 out | grep -qx notes && grep -qx narrowed out && grep -q "^# pass 3$" out && grep -qx "not wider" out'
exit $status
