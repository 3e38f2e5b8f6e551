# bench_network.sh TOP GO [ROUNDS]: throughput, latency and look-ups of a sandbox's network, against the same pasta and slirp4netns without
# sbx. All in the namespaces of the tests' lab, in turn, as an ordinary user; it needs root to make them.
set -eu
top=$1 go=$2 rounds=${3:-5}
[ "$(id -u)" = 0 ] || { echo "the network part needs root, who alone can make its namespaces: left out"; exit 0; }
for c in pasta slirp4netns nft ip unshare nsenter openssl python3; do
	command -v $c >/dev/null || { echo "missing: $c; the network part is left out"; exit 0; }
done
here=$(mktemp -d /home/sbx-netbench-XXXXXX)
trap 'rm -rf "$here"' EXIT
chmod 755 "$here"
mkdir -p "$here/home/project"
cp "$top/bin/sbx" "$here/sbx"
(cd "$top" && CGO_ENABLED=0 "$go" build -trimpath -o "$here/netbench" ./selftest/netbench && CGO_ENABLED=0 "$go" build -trimpath -o "$here/bench" ./selftest/bench)
chown -R 42424:42424 "$here/home"
cat >"$here/script" <<'S'
cd "$HOME/project"
inside "$BENCH/netbench" serve 198.51.100.12 >/mnt/served &
until grep -q ready /mnt/served; do sleep 0.05; done
# Carrier and program are in sessions of their own with sbx: the scheduler gives each session a share, so they are without sbx too.
nb=$BENCH/netbench addr=198.51.100.12 span=$SPAN
cp "$nb" ./netbench
both() { # open and with a list, in turn first: the second of two is often the faster
	a() { as sbx run -q --static --net $1 --allow-network -- ./netbench measure "sbx, $1, all" $addr $span; }
	l() { as sbx run -q --static --net $1 --allow-host a.wild.test:5001-5004 -- ./netbench measure "sbx, $1, list" a.wild.test $span; }
	if [ $((i % 2)) = 0 ]; then a $1 && l $1; else l $1 && a $1; fi
}
# A session that carries a label from its start, and a host that accepts it.
mkdir -p "$HOME/labelled/sbx" "$HOME/clients"
printf '%s\n' 'version = 1' '[[rule]]' 'path = "~/clients/**"' 'decision = "allow"' 'label = "clients"' '[[rule]]' 'host = "a.wild.test:5001-5004"' \
	'decision = "allow"' 'accepts = ["clients"]' >"$HOME/labelled/sbx/policy.toml"
carries() {
	as env XDG_CONFIG_HOME="$HOME/labelled" sbx run -q --static --net pasta --ro "$HOME/clients" --allow-host a.wild.test:5001-5004 -- \
		./netbench measure "sbx, pasta, list, label" a.wild.test $span
}
direct_slirp() { # without sbx
	as unshare --map-root-user --net sleep 600 &
	sleep 0.3
	p=$(pgrep -n -f '^sleep 600$')
	as setsid slirp4netns --configure --mtu=65520 --disable-host-loopback --enable-sandbox --enable-seccomp "$p" tap0 >/dev/null 2>&1 &
	q=$!
	until nsenter -t "$p" -U -n --preserve-credentials ip route 2>/dev/null | grep -q default; do sleep 0.05; done
	nsenter -t "$p" -U -n --preserve-credentials setsid -w "$nb" measure "slirp4netns itself" $addr $span
	kill $q "$p"
	wait $q 2>/dev/null || true
}
as "$BENCH/bench" -n $((ROUNDS * 10)) -warm 3 "start, pasta itself=pasta --config-net --quiet -- true" \
	"start, sbx=sbx run -q --static --allow-network -- true" "start, sbx dynamic=sbx run -q --allow-network -- true" >&2
i=0
while [ $i -lt "$ROUNDS" ]; do
	echo "round $((i + 1)) of $ROUNDS" >&2
	"$nb" measure "no sandbox" $addr $span
	as setsid -w pasta --config-net --mtu 65520 --quiet --no-map-gw -- setsid -w "$nb" measure "pasta itself" $addr $span
	both pasta
	carries
	as setsid -w pasta --config-net --mtu 65520 --quiet --no-map-gw -- setsid -w "$nb" measure "pasta itself, again" $addr $span
	direct_slirp
	both slirp4netns
	as sbx run -q --static --allow-host one.test -- ./netbench dns "sbx, list" one.test 2000
	i=$((i + 1))
done
S
# The lines are shown as they come; the tables are made of the whole at the end. What is compared runs right after one another, so each round gives a
# ratio of its own, and the median of those is what the rest of the machine disturbs least.
env -i HOME="$here/home" BENCH="$here" ROUNDS="$rounds" SPAN="${SPAN:-0.3}" PATH="$here:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" \
	timeout $((60 + rounds * 60)) unshare -m -n -p -f --kill-child --mount-proc sh "$top/selftest/testdata/netlab/lab.sh" 42424 "$here/script" | python3 -u -c '
import statistics, sys
rows = {}
for line in sys.stdin:
    f = line.rstrip("\n").split("\t")
    if len(f) == 3:
        rows.setdefault(f[0], {}).setdefault(f[1], []).append(float(f[2]))
        print("%-24s %-12s %10.1f" % (f[0], f[1], float(f[2])), file=sys.stderr)
metrics = ("down", "up", "trip", "connect")
def best(label, k):
    return (max if k in ("down", "up") else min)(rows[label][k])
print("\n| path (best round; median; processor time of all processes) | down MB/s | up MB/s | round trip µs | connection µs |\n|---|---|---|---|---|")
for label, m in rows.items():
    if "down" in m:
        print("| %s | %s |" % (label, " | ".join("%.0f; %.0f; %.0f" % (best(label, k), statistics.median(m[k]), statistics.median(m[k + " cpu"])) for k in metrics)))
print("\n| ratio, median of the rounds (time; processor time; half of the rounds lie between) | down | up | round trip | connection |\n|---|---|---|---|---|")
def ratio(a, b, k):
    both = sorted(x / y for x, y in zip(rows[a][k], rows[b][k]))
    cpu = statistics.median(x / y for x, y in zip(rows[a][k + " cpu"], rows[b][k + " cpu"]))
    return "%.2f; %.2f; %.2f to %.2f" % (statistics.median(both), cpu, both[len(both) // 4], both[(3 * len(both) - 1) // 4])
for a, b in [("pasta itself, again", "pasta itself"), ("sbx, pasta, all", "pasta itself"), ("sbx, slirp4netns, all", "slirp4netns itself"), ("sbx, pasta, list", "sbx, pasta, all"), ("sbx, pasta, list, label", "sbx, pasta, list"), ("sbx, slirp4netns, list", "sbx, slirp4netns, all"), ("sbx, pasta, all", "sbx, slirp4netns, all")]:
    print("| %s / %s | %s |" % (a, b, " | ".join(ratio(a, b, k) for k in metrics)))
d = rows["sbx, list"]
print("\nA cached allowed name: %.0f µs (median of the best round; of all rounds %.0f), 99 %% in %.0f µs." % (min(d["dns"]), statistics.median(d["dns"]), min(d["dns99"])))
'
