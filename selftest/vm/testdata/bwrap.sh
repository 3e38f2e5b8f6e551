# There are no user namespaces, and bubblewrap builds the sandboxes: bwrap.sh install, as root; bwrap.sh, as the user.
check() { if eval "$2"; then echo "pass: $1"; else echo "FAIL: $1"; sed 's/^/    /' ~/out; fi; }
if [ "$1" = install ]; then # /usr is the host's, and read-only
	HOME=/vm
	setpriv --reuid=42424 --regid=42424 --clear-groups env -i HOME=/home/tester PATH=/usr/local/bin:/usr/bin:/bin \
		sh -c 'cd /usr && sbx run -q --static --backend bwrap -- true' >~/out 2>&1
	status=$?
	check "control: a plain bwrap builds none ($status)" '[ $status = 125 ] && grep -q "bwrap builds no sandbox: .*namespace" ~/out'
	install -m 4755 /usr/bin/bwrap /usr/local/bin/bwrap
	mount --bind /usr/local/bin/bwrap /usr/bin/bwrap
	mkdir -p /etc/sbx
	printf '[sandbox]\nbackend = "bwrap"\n' >/etc/sbx/config.toml
	exit 0
fi
mkdir -p ~/project ~/apart && cd ~/project || exit 1
echo secret >~/apart/file
check "there are no user namespaces" '! unshare -Ur true 2>/dev/null'
sbx doctor >~/out 2>&1
check "doctor: bwrap can be had" 'grep -qE "^  bwrap +yes" ~/out'
sbx run --static -- sh -c 'readlink /proc/self/ns/user; [ -e ~/apart/file ] || echo absent; grep CapBnd /proc/self/status' >~/out 2>&1
check "it builds one, in the user namespace of the host" 'grep -q "$(readlink /proc/self/ns/user | sed "s/[][]/./g")" ~/out && grep -qx absent ~/out && grep -q "CapBnd:.0*$" ~/out'
check "what it cannot say there is a loss" 'grep -q "^sbx: sizes of /tmp .*refuses --size" ~/out'
sbx run -q --static -- sh -c 'exit 9' >~/out 2>&1; status=$?
check "exit status $status" '[ $status = 9 ]'
sbx run -q --static --timeout 1s -- sleep 60 >~/out 2>&1; status=$?
check "time-out: $status" '[ $status = 124 ]'
sbx selftest >~/out 2>&1
tail -n 1 ~/out
grep -E "^ *(fail|broken) " ~/out >~/failed
cat ~/failed
check "what fails in sbx selftest is what is lost" '! grep -vE " (ON-[0-9]+|RS-04|RS-04-inodes|VM-05) " ~/failed'
check "the rest passes: $(grep -cE "^ *pass " ~/out)" '[ $(grep -cE "^ *pass " ~/out) -ge 120 ]'
