# lab.sh UID SCRIPT: a network that leads nowhere. This shell's namespace is the host; another one is everything that it can reach.
# The names and addresses are in lab.py. SCRIPT runs as root in the host's namespace; "as CMD..." in it runs CMD as the ordinary user.
set -eu
uid=$1 script=$2 here=$(dirname "$0")
mount --make-rprivate /
mount -t tmpfs lab /mnt
mknod /mnt/tun c 10 200
chmod 666 /mnt/tun
[ -e /dev/net/tun ] || { mkdir -p /dev/net; : >/dev/net/tun; }
mount --bind /mnt/tun /dev/net/tun
echo 'nameserver 198.51.100.53' >/mnt/resolv.conf
mount --bind /mnt/resolv.conf /etc/resolv.conf
ip link set lo up
unshare -n sleep 600 </dev/null >/dev/null 2>&1 &
inet=$!
while [ "$(readlink /proc/$inet/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link add up0 type veth peer name e0 netns $inet
ip addr add 203.0.113.2/24 dev up0
ip link set up0 up
ip route add default via 203.0.113.1
if [ -e /proc/net/if_inet6 ]; then
	ip -6 addr add 2001:db8:1::2/64 dev up0 nodad
	ip -6 route add default via 2001:db8:1::1
fi
inside() { nsenter -t $inet -n "$@"; }
inside ip link set lo up
inside ip addr add 203.0.113.1/24 dev e0
inside ip link set e0 up
for a in 198.51.100.10 198.51.100.11 198.51.100.12 198.51.100.53 169.254.169.254 10.9.9.9; do inside ip addr add $a/32 dev lo; done
if [ -e /proc/net/if_inet6 ]; then
	inside ip -6 addr add 2001:db8:1::1/64 dev e0 nodad
	inside ip -6 addr add 2001:db8:2::10/128 dev lo nodad
fi
export LABLOG=/mnt/dns.log
: >$LABLOG
chmod 666 $LABLOG
inside /usr/bin/python3 "$here/lab.py" /mnt/ready </dev/null >/mnt/lab.out 2>&1 &
n=0
while [ ! -e /mnt/ready ]; do
	sleep 0.05
	n=$((n + 1))
	[ $n -lt 600 ] || { cat /mnt/lab.out; exit 1; }
done
as() { setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"; }
. "$script"
