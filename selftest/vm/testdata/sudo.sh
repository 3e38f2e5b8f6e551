# What goes wrong between sbx, sudo and sbx-helper is said, and nothing starts.
check() { if eval "$2"; then echo "pass: sudo: $1"; else echo "FAIL: sudo: $1"; sed 's/^/    /' ~/out; fi; }
mkdir -p ~/sudo && cd ~/sudo || exit 1
sudo -k
sbx run -q --backend helper --static -- touch made >~/out 2>&1; status=$?
check "without a terminal there is nobody to ask ($status)" '[ $status = 125 ] && grep -q "nobody at a terminal agreed to sudo" ~/out && [ ! -e made ]'
ANSWER=n python3 /vm/answer.py sbx run -q --backend helper --static -- touch made >~/out 2>&1; status=$?
check "who says no is not asked for a password ($status)" '[ $status = 125 ] && ! grep -q "password for" ~/out && [ ! -e made ]'
PASSWORD=wrong python3 /vm/answer.py sbx run -q --backend helper --static -- touch made >~/out 2>&1; status=$?
check "a wrong password: sudo says so, and sbx ($status)" '[ $status = 125 ] && grep -q "incorrect password" ~/out && grep -q "^sbx: .*sudo" ~/out && [ ! -e made ]'
python3 /vm/answer.py sbx run -q --backend helper --static --no-suid -- touch made >~/out 2>&1; status=$?
check "--no-suid asks nobody ($status)" '[ $status = 125 ] && ! grep -q "y/N" ~/out && grep -q "with --no-suid .* no_new_privs" ~/out && [ ! -e made ]'
python3 /vm/answer.py sbx run -q --static -- touch made >~/out 2>&1; status=$?
check "control: with the right one it starts ($status)" '[ $status = 0 ] && [ -e made ]'
