# The host is what it is meant to be, and the whole sbx selftest passes. With the word helper it is one without user namespaces,
# and sbx-helper builds the sandboxes, which leaves out what needs them; with the word host nothing but the host is looked at.
check() { if eval "$2"; then echo "pass: $1"; else echo "FAIL: $1"; sed 's/^/    /' ~/out; fi; }
mkdir -p ~/project && cd ~/project || exit 1
sbx doctor >~/out 2>&1
check "Yama: ptrace_scope 1" '[ "$(cat /proc/sys/kernel/yama/ptrace_scope)" = 1 ] && grep -qE "^(ok|note) *yama" ~/out'
check "AppArmor is on" 'grep -q apparmor /sys/kernel/security/lsm && [ "$(cat /sys/module/apparmor/parameters/enabled)" = Y ]'
check "control groups are delegated" 'grep -q "^ok *control groups *delegated" ~/out'
if [ "$1" = helper ]; then
	check "there are no user namespaces" '! unshare -Ur true 2>/dev/null'
	grep -v '^ok' ~/out
else
	check "doctor finds no loss" '! grep -q ^LOSS ~/out'
fi
[ "$1" != host ] || exit 0
sbx selftest >~/out 2>&1; status=$?
tail -n 1 ~/out
check "sbx selftest: exit status $status" '[ $status = 0 ]'
check "nothing failed, nothing was broken" 'tail -n 1 ~/out | grep -q " 0 failed, 0 broken"'
check "control groups were tested" 'grep -q "pass *RS-01" ~/out && grep -q "pass *RS-02" ~/out && grep -q "pass *RS-13" ~/out'
grep -E "^ *(skip|fail|broken) " ~/out >~/skipped # what is left out is named, with the reason
cat ~/skipped
if [ "$1" = helper ]; then
	mv ~/skipped ~/out
	check "left out is what needs user namespaces: $(wc -l <~/out) checks" '! grep -vE "missing: (guard|containers):" ~/out && [ $(wc -l <~/out) -le 20 ]'
else
	check "nothing was left out" '[ ! -s ~/skipped ]'
fi
