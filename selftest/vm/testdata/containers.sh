# Podman and crun in a sandbox of a host with delegated control groups: an image from Debian packages is built, run, limited
# and removed, and no registry is asked.
check() { if eval "$2"; then echo "pass: containers: $1"; else echo "FAIL: containers: $1"; sed 's/^/    /' ~/out; fi; }
mkdir -p ~/containers/bundle && cd ~/containers || exit 1
cp /kernel/debian.tar . && tar -C bundle --one-top-level=rootfs -xf debian.tar 2>/dev/null
cat >Containerfile <<'X'
FROM scratch
ADD debian.tar /
RUN hello -g "built on $(cat /etc/debian_version)" >/built
CMD ["/bin/sh", "-c", "cat /built; id -u; hello"]
X
cat >work.sh <<'X'
set -e
podman build -q -t mine . >&2
podman run --rm mine
podman run -q -d --name web mine sleep 1000 >&2
echo "exec $(podman exec web id -u)"
podman stop -t 0 web >&2
podman rm web >&2
podman rmi -f mine >&2
echo "left: $(podman ps -a -q | wc -l) containers, $(podman images -q | wc -l) images"
X
sbx run --static --containers -- sh work.sh >~/out 2>&1; status=$?
check "podman builds, runs, stops and removes ($status)" '[ $status = 0 ] && grep -q "^built on [0-9]" ~/out && grep -q "^Hello, world!" ~/out && grep -qx "exec 0" ~/out && grep -qx "left: 0 containers, 0 images" ~/out'
check "no loss is told of" '! grep -i "loss\|not enforced" ~/out'
(cd bundle && crun spec --rootless && sed -i 's/"terminal": true/"terminal": false/; s/"sh"/"hello", "-g", "from a bundle"/' config.json) >~/out 2>&1
sbx run -q --static --containers -- crun run --bundle bundle one >~/out 2>&1; status=$?
check "crun runs a bundle ($status)" '[ $status = 0 ] && grep -qx "from a bundle" ~/out'
# The limits of each container, within those of the session.
sbx run -q --static --containers --pids 300 -- sh -c 'podman import -q debian.tar base >&2
	podman run --rm --pids-limit 20 --memory 64m base sh -c "for i in \$(seq 40); do sleep 30 & done; echo all"; echo "ended $?"
	podman run --rm --memory 64m base sh -c "busybox dd if=/dev/zero of=/dev/null bs=200M count=1; sleep 1"; echo "ended $?"' >~/out 2>&1; status=$?
cat ~/out
check "a container has limits of its own ($status)" '! grep -qx all ~/out && grep -q "Cannot fork" ~/out && grep -q "^Killed" ~/out'
sbx run --static --containers --memory 300M -- sh -c 'podman import -q debian.tar base >&2; podman run --rm base busybox dd if=/dev/zero of=/dev/null bs=900M count=1' >~/out 2>&1; status=$?
check "the session's limit is above them all ($status)" '[ $status = 137 ] && grep -q "memory limit 300M reached by .*--memory" ~/out'
n=0; while { pgrep podman || pgrep conmon || pgrep crun; } >~/out && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
check "nothing of it runs on" '[ ! -s ~/out ]'
sbx run -q --static -- true
check "no group is left" '[ -z "$(find /sys/fs/cgroup -name "sbx-*")" ]'
