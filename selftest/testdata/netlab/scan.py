# scan.py PID [UNTIL [EXCEPT...]]: what the session of PID holds. Each process that PID starts is traced, and looked at while it
# exits: its memory is what it was, with the answers that it got. When the file UNTIL is there those that still live are looked at,
# and each file of each mount that may be written there, but for the names EXCEPT.
import array, ctypes, fnmatch, os, re, stat, sys
from found import Found, LONGEST
SEIZE, CONT, FORK, VFORK, CLONE, EXIT, WALL, PAGE, PART = 0x4206, 7, 1, 2, 3, 6, 0x40000000, os.sysconf("SC_PAGESIZE"), 1 << 20
THERE = 1 << 62 # in pagemap: present or swapped out
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
top = int(sys.argv[1])
inside = os.readlink("/proc/%d/ns/pid" % top)
held, files, seen, looked = Found("session memory"), Found("session files"), set(), [0]
def memory(pid):
    for name in ("environ", "cmdline"):
        yield open("/proc/%d/%s" % (pid, name), "rb").read()
    mem, pages = open("/proc/%d/mem" % pid, "rb", 0), open("/proc/%d/pagemap" % pid, "rb", 0)
    for line in open("/proc/%d/maps" % pid):
        span, perms, offset, dev, ino = line.split()[:5]
        a, b = (int(x, 16) for x in span.split("-"))
        known = (dev, ino, offset, b - a)
        if perms[0] != "r" or "[vvar" in line or "[vsyscall" in line or known in seen:
            continue
        if perms[1] != "w" and ino != "0": # the same in each process
            seen.add(known)
        for at in range(a, b, PART): # the last bytes twice: something may lie across
            try:
                pages.seek(at // PAGE * 8)
                there = array.array("Q", pages.read(min(b - at, PART) // PAGE * 8))
                for run in re.finditer(b"\1+", bytes(map(THERE.__le__, there))): # else nobody has touched them
                    mem.seek(at + run.start() * PAGE)
                    yield mem.read(min(b - mem.tell(), len(run[0]) * PAGE + LONGEST))
            except (OSError, ValueError, OverflowError):
                pass
def look(pid, found):
    try:
        found.look(memory(pid))
    except OSError:
        pass
def ptrace(*args):
    if libc.ptrace(*args) < 0 and ctypes.get_errno() != 3: # a process may have been killed
        sys.exit("ptrace: " + os.strerror(ctypes.get_errno()))
def trace(until):
    ptrace(SEIZE, top, None, sum(1 << x for x in (FORK, VFORK, CLONE, EXIT)))
    open("watching", "w").write("x")
    while not os.path.exists(until):
        try:
            tid, status = os.waitpid(-1, WALL)
        except ChildProcessError:
            return
        if not os.WIFSTOPPED(status):
            continue
        event, sig = status >> 16, os.WSTOPSIG(status)
        if event == EXIT:
            try:
                group, threads = map(int, re.search(r"Tgid:\s+(\d+)[^$]*Threads:\s+(\d+)", open("/proc/%d/status" % tid).read()).groups())
            except OSError: # killed meanwhile
                group, threads = tid, 1
            if group == tid or threads <= 2: # beside the first, which may have ended long before
                looked[0] += group == tid
                look(tid, held)
        ptrace(CONT, tid, None, 0 if event else sig)
def written(pid):
    for line in open("/proc/%d/mountinfo" % pid):
        a, b = line.split(" - ")
        at, how = a.split()[4:6]
        if "rw" in how.split(",") and b.split()[0] not in ("proc", "sysfs", "devpts", "cgroup2", "mqueue"):
            yield "/proc/%d/root%s" % (pid, at.encode().decode("unicode_escape"))
def search(pid, names):
    for top in written(pid):
        for d, _, list in os.walk(top):
            for f in [os.path.join(d, f) for f in list if not any(fnmatch.fnmatch(f, n) for n in names)] + [top] * os.path.isfile(top):
                try:
                    if stat.S_ISREG(os.lstat(f).st_mode) and (os.lstat(f).st_dev, os.lstat(f).st_ino) not in seen:
                        seen.add((os.lstat(f).st_dev, os.lstat(f).st_ino))
                        files.look([open(f, "rb").read()])
                except OSError:
                    pass
if sys.argv[2:]:
    trace(sys.argv[2])
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try:
        ns, name = os.readlink("/proc/%d/ns/pid" % pid), os.path.basename(os.readlink("/proc/%d/exe" % pid))
    except OSError:
        continue
    if ns == inside:
        look(pid, held)
    elif name in ("sbx", "sbx-proxy"):
        seen.clear()
        own = Found("broker" if name == "sbx" else name)
        look(pid, own)
        print(own.where, "value", own["value"])
search(top, sys.argv[3:])
print("session processes", looked[0])
held.tell()
files.tell()
