# Makes the machine's disk: sh disk.sh STAGE IMAGE. STAGE/vm is there already and holds what the test gives the machine.
# /usr comes from this host when it runs; the rest of the root file system is here, /etc as a copy.
set -eu
stage=$1 image=$2
PATH=$PATH:/usr/sbin:/sbin
cd "$stage"
mkdir -p usr kernel dev proc sys run home root tmp mnt opt srv var/cache var/log var/lib/sudo/lectured var/tmp
for link in bin sbin lib lib64 lib32; do
	[ ! -L "/$link" ] || ln -s "$(readlink "/$link")" "$link"
done
ln -s /run var/run
chmod 1777 tmp var/tmp
chmod 0700 root
cp -a /etc etc 2>/dev/null || : # what an ordinary user may not read is not needed
rm -rf etc/shadow* etc/gshadow* etc/passwd- etc/group- etc/sudoers* etc/ssh etc/sbx etc/cron* etc/subuid* etc/subgid* etc/mtab etc/hosts etc/hostname etc/resolv.conf
sed -i '/:42424:/d' etc/passwd etc/group
echo 'tester:x:42424:42424::/home/tester:/bin/bash' >>etc/passwd
echo 'tester:x:42424:' >>etc/group
cut -d: -f1 etc/passwd | sed 's/$/:*:19000:0:99999:7:::/' >etc/shadow
echo 'tester:500000:65536' | tee etc/subuid >etc/subgid
printf 'Defaults env_reset\nroot ALL=(ALL) ALL\n' >etc/sudoers
[ ! -e vm/sudoers ] || cat vm/sudoers >>etc/sudoers
chmod 0440 etc/sudoers; chmod 0640 etc/shadow
ln -s ../proc/self/mounts etc/mtab
echo machine >etc/hostname
echo 127.0.0.1 localhost machine >etc/hosts
echo nameserver 10.0.2.3 >etc/resolv.conf
mkdir -p home/tester
cp -a etc/skel/. home/tester/ 2>/dev/null || :
truncate -s 4G "$image"
mke2fs -q -t ext4 -d . "$image"
