# For how long a program that waits for it can open a secret which the host makes in a directory that is mounted natively.
# bench_late.sh [N]: as an ordinary user, with sbx in PATH, in an empty directory below the home. N (60) secrets are made in each mode.
set -eu
n=${1:-60}
mkdir -p late
cat >late.py <<'P'
import os, sys, time
n, seen, took = int(sys.argv[1]), None, []
print("make", flush=True)
while len(took) < n:
    try:
        os.close(os.open("late/.env", os.O_RDONLY))
        if seen is None: seen = time.monotonic()
    except FileNotFoundError: seen = None
    except PermissionError:
        took.append((time.monotonic() - seen) * 1000 if seen else 0.0)
        seen = None
        if len(took) == n: break
        print("remove", flush=True)
        while os.path.exists("late/.env"): time.sleep(.001)
        print("make", flush=True)
took.sort()
print("never open: %d of %d; open for ms: median %.2f, of nine in ten at most %.2f, at most %.2f"
      % (took.count(0), n, took[n // 2], took[n * 9 // 10], took[-1]), file=sys.stderr)
P
for mode in static dynamic; do
	echo $mode:
	sbx run -q --mode $mode --prompt deny -- python3 late.py "$n" | while read -r what; do
		rm -f late/.env; [ $what = remove ] || echo SECRET >late/.env
	done
	rm -f late/.env
done
