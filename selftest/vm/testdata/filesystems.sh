# The guarded project and the gate on the file systems that projects lie on. As root, with the word make, it makes them.
if [ "$1" = make ]; then
	cd /srv
	for kind in ext4 xfs btrfs; do
		command -v mkfs.$kind >/dev/null || continue
		truncate -s 400M $kind.img && mkfs.$kind -q $kind.img >/dev/null 2>&1 && mkdir $kind && mount -o loop $kind.img $kind || echo "FAIL: no $kind file system"
	done
	mkdir tmpfs && mount -t tmpfs -o mode=755 none tmpfs
	mkdir -p overlay low/project up work
	echo lower >low/project/lower.txt
	mount -t overlay -o lowerdir=low,upperdir=up,workdir=work none overlay
	for kind in ext4 xfs btrfs tmpfs overlay; do # not the layers of the overlay, behind its back
		[ ! -d $kind ] || { mkdir -p $kind/project && chown -R 42424:42424 $kind/project; }
	done
	exit
fi
check() { if eval "$2"; then echo "pass: $kind $how: $1"; else echo "FAIL: $kind $how: $1"; sed 's/^/    /' ~/out; fi; }
cat >~/job.py <<'X'
import mmap, os, subprocess
os.makedirs("a/b/c")
for i in range(300): open(f"a/f{i}", "w").write(str(i))
assert len(os.listdir("a")) == 301
os.rename("a/f1", "a/b/g"); os.link("a/f2", "a/h"); os.symlink("f3", "a/s")
assert os.stat("a/h").st_nlink == 2 and os.stat("a/h").st_ino == os.stat("a/f2").st_ino and open("a/s").read() == "3"
os.chmod("a/f4", 0o750); os.truncate("a/f5", 5 << 20)
with open("a/f6", "r+b") as f:
    f.truncate(8192)
    m = mmap.mmap(f.fileno(), 8192)
    m[4096:4101] = b"hello"; m.flush()
    f.seek(4096); assert f.read(5) == b"hello"
with open("a/f7", "ab", buffering=0) as f: os.fsync(f.write(b"x") and f.fileno())
open("run.sh", "w").write("#!/bin/sh\necho ran\n"); os.chmod("run.sh", 0o755)
assert subprocess.run(["./run.sh"], capture_output=True, text=True).stdout == "ran\n"
try: os.setxattr("a/f8", "user.x", b"y"); assert os.getxattr("a/f8", "user.x") == b"y"
except OSError as e: print("xattr", e.errno)
for i in range(100, 200): os.unlink(f"a/f{i}")
print("work done")
for path, mode in ((".env", "r"), (".git/hooks/pre-commit", "w"), (".git/config", "a")):
    try: open(path, mode).close(); print("opened", path)
    except OSError as e: print("refused", path)
X
for dir in /srv/*/project; do
	kind=$(basename "$(dirname "$dir")")
	case $kind in low | up | work) continue ;; esac
	for how in static dynamic; do
		cd $dir && rm -rf a run.sh .git && git init -q . && echo SECRET >.env || exit 1
		cp ~/job.py .
		sbx run -q --mode $how --prompt deny -- python3 job.py >~/out 2>&1; status=$?
		check "work in a project ($status)" '[ $status = 0 ] && grep -qx "work done" ~/out'
		check "what is kept from it" '[ $(grep -c ^refused ~/out) = 3 ] && ! grep -q SECRET ~/out && [ ! -e .git/hooks/pre-commit ]'
		check "outside it is as inside" '[ "$(cat a/b/g a/s)" = 13 ] && [ "$(stat -c %h%a a/h)" = 2644 ] && [ "$(stat -c %s a/f5)" = 5242880 ] && [ "$(ls a | wc -l)" = 202 ] && [ "$(stat -c %a a/f4)" = 750 ]'
	done
done
