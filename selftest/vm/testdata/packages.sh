# The Debian packages from their first version to their purge, on a host without user namespaces, as root. /vm/packages has
# them, and below old an earlier version of each (older.sh). The user's sandboxes are built by the helper of sbx-helper-suid.
check() { if eval "$2"; then echo "pass: packages: $1"; else echo "FAIL: packages: $1"; sed 's/^/    /' /run/log; fi; }
as() { setpriv --reuid=42424 --regid=42424 --init-groups env -i PATH=/usr/bin:/bin HOME=/home/tester sh -c "cd ~/project && $*"; }
listing() { find /usr/bin /usr/lib /usr/libexec /usr/share /usr/local /etc /var/lib -xdev \( -path /var/lib/dpkg -o -path '/etc/g*shadow*' -o -path '/etc/group*' \) -prune -o -path '*sbx*' -print | sort; }

# /usr is the host's: what is installed goes on a layer of this machine's. dpkg knows of one package.
mkdir -p /vm/layer/upper /vm/layer/work /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/alternatives
mount -t overlay -o lowerdir=/usr,upperdir=/vm/layer/upper,workdir=/vm/layer/work usr /usr || exit 1
rm -rf /usr/local/bin/sbx* /usr/local/lib/sbx /usr/local/libexec/sbx /usr/bin/sbx /usr/libexec/sbx
printf 'Package: passwd\nStatus: install ok installed\nVersion: 1:4.13\nArchitecture: amd64\nMaintainer: x\nDescription: x\n' >/var/lib/dpkg/status
: >/var/lib/dpkg/info/passwd.list
install -d -o 42424 -g 42424 /home/tester/project
new=$(dpkg-deb -f $(ls /vm/packages/sbx_*.deb) Version)
listing >/run/before
export DEBIAN_FRONTEND=noninteractive

dpkg -i /vm/packages/old/*.deb >/run/log 2>&1; status=$?
check "install ($status)" '[ $status = 0 ] && [ "$(stat -c "%a %U:%G" /usr/libexec/sbx/sbx-helper-suid /usr/libexec/sbx/sbx-helper /usr/libexec/sbx/sbx-host /usr/bin/sbx | tr "\n" " ")" = "4750 root:sbx 755 root:root 755 root:root 755 root:root " ]'
as 'sbx run -q --backend helper --static -- id -u' >/run/log 2>&1; status=$?
check "who is not of the group sbx is told the ways out ($status)" '[ $status = 125 ] && grep -q "members of the group sbx" /run/log'
usermod -aG sbx tester 2>/run/log || groupmems -g sbx -a tester
as 'sbx run -q --static -- id' >/run/log 2>&1; status=$?
check "a member's sandbox runs ($status)" '[ $status = 0 ] && grep -q uid=42424 /run/log'
# What the administrator decided stays through an upgrade; so does what runs.
mkdir -p /etc/sbx && echo 'allow_uids = [42424]' >/etc/sbx/helper.toml
echo '# of the administrator' >>/etc/apparmor.d/sbx
mkfifo -m 666 /run/go
(as 'exec sbx run -q --static --name through -- sh -c "echo ready; read x; echo went on"' <>/run/go >/run/through 2>&1) & runs=$!
n=0; until grep -q ready /run/through || [ $n -gt 600 ]; do sleep 0.1; n=$((n + 1)); done
dpkg --force-confold -i /vm/packages/*.deb >/run/log 2>&1; status=$?
check "upgrade ($status)" '[ $status = 0 ] && [ "$(dpkg-query -W -f "\${Version} " sbx sbx-helper sbx-helper-suid)" = "$new $new $new " ] && ! find /usr/share/doc -name of-the-old-version | grep .'
check "the administrator's files are as they were" 'grep -q "of the administrator" /etc/apparmor.d/sbx && [ "$(cat /etc/sbx/helper.toml)" = "allow_uids = [42424]" ] && [ "$(stat -c "%a %U:%G" /usr/libexec/sbx/sbx-helper-suid)" = "4750 root:sbx" ]'
echo >/run/go; wait $runs; cp /run/through /run/log
check "what ran during the upgrade went on" 'grep -qx "went on" /run/log'
as 'sbx run -q --static -- id -u' >/run/log 2>&1; status=$?
check "after it a sandbox runs ($status)" '[ $status = 0 ] && grep -qx 42424 /run/log'
echo 'allow_uids = [1]' >/etc/sbx/helper.toml
as 'sbx run -q --static -- id -u' >/run/log 2>&1; status=$?
check "control: /etc/sbx is what counts ($status)" '[ $status = 125 ] && grep -q "helper.toml" /run/log'
dpkg-statoverride --update --add root root 0700 /usr/libexec/sbx/sbx-helper-suid
dpkg --force-confold -i /vm/packages/*.deb >/run/log 2>&1; status=$?
check "the mode that the administrator gave stays ($status)" '[ $status = 0 ] && [ "$(stat -c "%a %U:%G" /usr/libexec/sbx/sbx-helper-suid)" = "700 root:root" ]'
dpkg-statoverride --remove /usr/libexec/sbx/sbx-helper-suid
dpkg -r sbx-helper-suid >/run/log 2>&1; status=$?
check "without the package nothing is privileged ($status)" '[ $status = 0 ] && [ ! -e /usr/libexec/sbx/sbx-helper-suid ] && [ -x /usr/libexec/sbx/sbx-helper ] && ! find /usr/bin /usr/libexec/sbx -name "sbx*" -perm /6000 | grep .'
dpkg -r sbx-helper sbx >/run/log 2>&1; status=$?
check "remove keeps configuration ($status)" '[ $status = 0 ] && [ ! -e /usr/bin/sbx ] && [ ! -e /usr/libexec/sbx ] && grep -q "of the administrator" /etc/apparmor.d/sbx && [ -e /etc/sbx/helper.toml ]'
dpkg -P sbx-helper-suid sbx-helper sbx >/run/log 2>&1; status=$?
check "purge takes it, and leaves what the administrator made ($status)" '[ $status = 0 ] && [ ! -e /etc/apparmor.d/sbx ] && [ -e /etc/sbx/helper.toml ]'
rm -r /etc/sbx
listing >/run/after; diff /run/before /run/after >/run/log
check "nothing else is left" '[ ! -s /run/log ] && ! dpkg-query -W -f "\${Package}\n" | grep sbx'
