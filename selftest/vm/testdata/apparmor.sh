# A host where AppArmor gives programs no user namespaces unless their profile says so, as Ubuntu 24.04. As root, with the
# word load, it loads such a profile for who asks for it (AppArmor 4 of /kernel/apparmor), and the one that sbx ships.
if [ "$1" = load ]; then
	cd /kernel/apparmor
	cat >/run/profiles <<'X'
abi <abi/4.0>,
profile ordinary {
  allow all,
  deny userns,
}
X
	sed -e 's|/usr/bin/sbx|/usr/local/bin/sbx|g' -e '/include/d' /vm/profile >/run/shipped
	for file in /run/profiles /run/shipped; do
		usr/lib64/ld-linux-x86-64.so.2 --library-path usr/lib/x86_64-linux-gnu usr/sbin/apparmor_parser --config-file /dev/null --base etc/apparmor.d -K -a $file 2>&1 | grep -v 'parser.conf' || :
	done
	exit
fi
check() { if eval "$2"; then echo "pass: AppArmor: $1"; else echo "FAIL: AppArmor: $1"; sed 's/^/    /' ~/out; fi; }
mkdir -p ~/apparmor && cd ~/apparmor || exit 1
ordinary() { sh -c 'echo "exec ordinary" >/proc/self/attr/apparmor/exec && exec "$@"' - "$@"; }
cp /usr/local/bin/sbx ~/sbx # where no profile is attached
unshare -Ur true >~/out 2>&1
check "control: without the profile there are user namespaces" '[ $? = 0 ]'
ordinary cat /proc/self/attr/current >~/out 2>&1
check "the profile is enforced" 'grep -q "^ordinary (enforce)" ~/out'
ordinary unshare -Ur true >~/out 2>&1
check "with it there are none ($?)" 'ordinary true && ! ordinary unshare -Ur true 2>/dev/null'
ordinary ~/sbx run -q --static -- id >~/out 2>&1; status=$?
check "sbx goes by the helper there ($status)" '[ $status = 0 ] && grep -q uid=42424 ~/out'
ordinary ~/sbx run -q --static --backend native --no-suid -- id >~/out 2>&1; status=$?
check "and says why without it ($status)" '[ $status = 125 ] && grep -q "with --no-suid .* no_new_privs" ~/out'
sh -c 'sleep 300 & sbx run -q --static -- cat /proc/self/attr/current; kill $!' >~/out 2>&1
check "the shipped profile lets sbx have its own" 'grep -q "sbx\|unconfined" ~/out && sbx run -q --static --no-suid -- true'
cat ~/out
