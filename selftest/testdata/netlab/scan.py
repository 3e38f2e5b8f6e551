# Memory, environment and arguments of every process.
import os, sys
inside = os.readlink("/proc/%s/ns/pid" % sys.argv[1])
def memory(pid):
    for name in ("environ", "cmdline"):
        yield open("/proc/%d/%s" % (pid, name), "rb").read()
    mem = open("/proc/%d/mem" % pid, "rb", 0)
    for line in open("/proc/%d/maps" % pid):
        span, perms = line.split()[:2]
        if perms[0] != "r" or "[vvar" in line or "[vsyscall" in line:
            continue
        a, b = (int(x, 16) for x in span.split("-"))
        try:
            mem.seek(a)
            yield mem.read(b - a)
        except (OSError, ValueError, OverflowError):
            pass
def find(pid, text):
    n = 0
    try:
        for b in memory(pid):
            n += b.count(text)
    except OSError:
        pass
    return n
found = {"placeholder": 0, "value": 0}
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try:
        ns, name = os.readlink("/proc/%d/ns/pid" % pid), os.path.basename(os.readlink("/proc/%d/exe" % pid))
    except OSError:
        continue
    if ns == inside:
        found["placeholder"] += find(pid, b"sbx-placeholder-")
        found["value"] += find(pid, b"REALVALUE")
    elif name == "sbx":
        print("broker value", find(pid, b"REALVALUE"))
    elif name == "sbx-proxy":
        print("sbx-proxy value", find(pid, b"REALVALUE"))
for k, v in found.items():
    print("session memory", k, v)
