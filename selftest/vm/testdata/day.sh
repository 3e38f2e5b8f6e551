# A day's work in a home as Debian makes it: sh day.sh HOW MODE. HOW is setuid or sudo, which says by what the sandboxes are
# built (there are no user namespaces), MODE is static or dynamic.
how=$1 mode=$2
sbx() { if [ $how = sudo ]; then python3 /vm/answer.py /usr/local/bin/sbx "$@"; else command sbx "$@"; fi; }
check() { if eval "$2"; then echo "pass: $how $mode: $1"; else echo "FAIL: $how $mode: $1"; sed 's/^/    /' ~/out; fi; }
rm -rf ~/work ~/.config ~/.local; mkdir -p ~/work ~/.ssh ~/.config/sbx ~/.config/tool
echo SECRET-KEY >~/.ssh/id_rsa; echo SECRET-TOKEN >~/.config/tool/token; echo SECRET-TEXT >~/letter.txt
printf '[user]\nname = a\nemail = a@example.org\n' >~/.gitconfig
cat >~/.config/sbx/config.toml <<'X'
[sandbox]
prompt_command = "echo $SBX_QUESTION_OP $SBX_QUESTION_PATH >>~/asked; case $SBX_QUESTION_PATH in */letter.txt) echo deny;; *) echo allow file forever;; esac"
X
cd ~/work
cat >job.sh <<'X'
bash -lic 'echo shell' </dev/null 2>/dev/null
git init -q . && echo x >f && git add f && git commit -qm x && echo commits: $(git log --oneline | wc -l)
command -v node >/dev/null && node -e 'console.log("node")'
python3 -c 'import json, ssl, sqlite3, site, subprocess; print("python", subprocess.run(["sh", "-c", "echo child"], capture_output=True, text=True).stdout)'
printf 'all:\n\techo made >made.txt\n' >Makefile && make -s && cat made.txt
ls -la ~ >/dev/null && find ~ -maxdepth 1 >/dev/null && echo listed
cat ~/.ssh/id_rsa ~/letter.txt; echo x >~/planted; echo x >/usr/planted
grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs)' /proc/self/status
ls -d /proc/[0-9]* | wc -l
exit 7
X
sbx run -q --mode $mode -- sh job.sh >~/out 2>&1; status=$?
check "the job ends with its own status ($status)" '[ $status = 7 ]'
for line in shell 'commits: 1' 'python child' made listed; do check "$line" "grep -q '$line\$' ~/out"; done # the question may be on the same line
check "the key and what was refused stay out" '! grep -q SECRET ~/out && ! grep -q SECRET made.txt f'
check "nothing is written outside" '[ ! -e ~/planted ] && [ ! -e /usr/planted ]'
check "the user's ids, no capability, no_new_privs" "grep -q 'Uid:.42424.42424.42424.42424' ~/out && grep -q 'CapEff:.0*\$' ~/out && grep -q 'CapBnd:.0*\$' ~/out && grep -q 'NoNewPrivs:.1' ~/out"
check "the files of the job are the user's" '[ "$(stat -c %u f made.txt .git/HEAD | sort -u)" = 42424 ] && git -C . log --oneline >/dev/null'
# Negative control: what is written outside of the sandbox is.
sh -c 'echo x >~/planted' && check "control: without a sandbox the file is written" '[ -e ~/planted ]'; rm -f ~/planted
if [ $mode = dynamic ]; then
	check "the letter was asked about" 'grep -q letter.txt ~/asked'
	rm -f ~/asked
	sbx run -q --mode $mode -- sh job.sh >~/out 2>&1
	check "nothing is asked twice that was answered for ever" '! grep -v letter.txt ~/asked'
fi
sbx run -q --mode $mode --timeout 3s -- sleep 300 >~/out 2>&1; status=$?
check "--timeout ends it ($status)" '[ $status = 124 ]'
# A killed broker leaves nothing behind.
if [ $how = setuid ]; then
	command sbx run -q --mode $mode -- sh -c 'echo ready; sleep 4242' >~/out 2>&1 & broker=$!
	n=0; until grep -q ready ~/out || [ $n -gt 300 ]; do sleep 0.1; n=$((n + 1)); done
	kill -9 $broker; wait $broker 2>/dev/null
	n=0; while pgrep -f 'sleep 4242' >/dev/null && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
	check "a killed broker's sandbox has ended" '! pgrep -f "sleep 4242"'
fi
check "no process and no mount is left" "! pgrep sbx && ! grep -q sbx /proc/self/mounts"
