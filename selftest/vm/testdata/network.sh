# --allow-network with each program that can carry it, on a kernel with a tun device for everybody. As root, with the word
# lab, it makes the internet: a network namespace with an address of its own and a web server.
if [ "$1" = lab ]; then
	ip netns add internet
	ip link add lab type veth peer name lab0 netns internet
	ip address add 203.0.113.2/24 dev lab
	ip link set lab up
	ip netns exec internet sh -c 'ip link set lo up; ip address add 203.0.113.1/24 dev lab0; ip address add 198.51.100.10/32 dev lo; ip address add 10.9.9.9/32 dev lo; ip link set lab0 up'
	ip route replace default via 203.0.113.1 # the one way that a helper's device leads
	mkdir -p /run/page /etc/sbx
	printf 'veth = true\nforwarding = true\n' >/etc/sbx/helper.toml
	echo 'a page' >/run/page/index.html
	ip netns exec internet python3 -m http.server 80 --directory /run/page >/dev/null 2>&1 3>&- &
	exit
fi
check() { if eval "$2"; then echo "pass: network: $1"; else echo "FAIL: network: $1"; sed 's/^/    /' ~/out; fi; }
mkdir -p ~/network && cd ~/network || exit 1
page='curl -s -m 30 http://198.51.100.10/'
n=0; until $page >~/out || [ $n -gt 20 ]; do sleep 1; n=$((n + 1)); done
check "control: the host reaches the page, and a private address" 'grep -qx "a page" ~/out && curl -s -m 30 -o /dev/null http://10.9.9.9/'
sbx run -q --static -- $page >~/out 2>&1
check "without the switch there is no network" '! grep -q "a page" ~/out'
for net in pasta slirp4netns veth; do
	[ $net = veth ] || command -v $net >/dev/null || { echo "missing: $net"; continue; }
	sbx run --static --allow-network --net $net -- sh -c "$page; curl -s -m 10 -o /dev/null http://10.9.9.9/ || echo private refused" >~/out 2>&1
	check "$net carries it" 'grep -qx "a page" ~/out'
	check "$net: private addresses are refused" 'grep -qx "private refused" ~/out'
done
# The helper's device and rules go with the broker, however it ends.
sbx run -q --static --allow-network --net veth -- sh -c 'echo ready; sleep 4242' >~/out 2>&1 & broker=$!
n=0; until grep -q ready ~/out || [ $n -gt 600 ]; do sleep 0.1; n=$((n + 1)); done
ip -o link >>~/out
check "control: a running sandbox has a device here" 'ip -o link | grep -q ": sbx"'
kill -9 $broker; wait $broker 2>/dev/null
n=0; while { pgrep sbx-helper || ip -o link | grep ": sbx"; } >~/out && [ $n -lt 300 ]; do sleep 0.1; n=$((n + 1)); done
check "killed, it leaves neither" '[ ! -s ~/out ]'
check "no carrier is left" '! pgrep pasta && ! pgrep passt && ! pgrep slirp4netns'
