# How the host fares while something in a sandbox takes all that it can get: responsive.py SBX [ROUNDS]. For each kind of bomb, in each round, how long it
# takes outside to start a program, and to come back from a sleep of a millisecond, with the bomb at work and right after its end; then the median of the
# rounds' ratios. A line begins with "pass:", or with "FAIL:" where the ratio is above LIMIT (2), the end was not explained or something is left.
import os, re, signal, statistics, subprocess, sys, time

sbx, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
limit = float(os.environ.get("LIMIT", "2"))

def probe():
    starts, sleeps = [], []
    for _ in range(100):
        t = time.monotonic()
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
        starts.append(time.monotonic() - t)
        t = time.monotonic()
        time.sleep(0.001)
        sleeps.append(time.monotonic() - t)
    return statistics.median(starts), statistics.median(sleeps)

# What is run inside says "full" when it has all that it can get, and then goes on. Each name comes with the sandbox's options and what is said at the end.
fork = "import os\nsaid = False\nwhile True:\n  try: os.fork()\n  except OSError: said = said or not os.write(1, b'full\\n')"
memory = "import time\nprint('full', flush=True)\nx = []\nwhile True: x.append(bytearray(1 << 20))"
many = "import os\nprint('full', flush=True)\nfor _ in range(8):\n  if os.fork() == 0: break\nx = []\nwhile True: x.append(bytearray(1 << 20))"
hog = "import os\nfor _ in range(16):\n  if os.fork() == 0: break\nprint('full', flush=True)\nwhile True: pass"
sids = "import os\nfor _ in range(16):\n  if os.fork() == 0:\n    os.setsid()\n    while True: pass\nimport time\ntime.sleep(3)\nprint('full', flush=True)\ntime.sleep(900)"
fds = "import os\nkeep = []\ntry:\n  while True: keep.append(os.dup(0))\nexcept OSError as e: print('full', e.strerror, flush=True)\nwhile True:\n  try: os.dup(0)\n  except OSError: pass"
disk = "f = open('/tmp/fill', 'wb', 0)\nsaid = False\nwhile True:\n  try: f.write(bytes(1 << 16))\n  except OSError: said = said or not print('full', flush=True)"
files = "i, said = 0, False\nwhile True:\n  i += 1\n  try: open('/tmp/%d' % i, 'w').close()\n  except OSError: said = said or not print('full', flush=True)"
zombies = "import os, time\ntry:\n  for _ in range(10000):\n    if os.fork() == 0: os._exit(0)\nexcept OSError as e: print('full', e.strerror, flush=True)\nelse: print('full', flush=True)\ntime.sleep(900)"
bombs = {
    "fork bomb": (["--pids", "200"], fork, r"limit of 200 processes reached.*--pids"),
    "memory bomb": (["--memory", "100M"], memory, r"memory limit 100M (of each process )?reached by python3\[\d+\].*--memory"),
    "memory bomb of eight processes": (["--memory", "300M"], many, r"memory limit 300M (of each process )?reached by python3\[\d+\].*--memory"),
    "processor hog": ([], hog, None),
    "processor hog, a session each": ([], sids, None),
    "descriptors": ([], fds, None),
    "a full disk": (["--tmp-size", "32M"], disk, r"/tmp \(32M\) is full; .*--tmp-size"),
    "inodes": (["--tmp-size", "32M"], files, r"/tmp \(32M\) is full of files; .*--tmp-size"),
    "10 000 zombies, refused": ([], zombies, r"limit of 4096 processes reached.*--pids"),
    "10 000 zombies, allowed": (["--pids", "12000"], zombies, r"limit of \d+ processes (nearly )?reached|^$"),
}

def start(options, code):
    return subprocess.Popen([sbx, "run", "--static"] + options + ["--", "python3", "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open("err", "a"))

def groups():
    return [d for d, _, _ in os.walk("/sys/fs/cgroup") if re.match("sbx-", os.path.basename(d))]

if os.environ.get("ONLY"):
    bombs = {n: b for n, b in bombs.items() if re.search(os.environ["ONLY"], n)}
before = groups()
for name, (options, code, message) in bombs.items():
    open("err", "w").close()
    ratios, there, gone, figures = [], [], [], []
    for _ in range(rounds):
        began = time.monotonic()
        p = start(options, code)
        p.stdout.readline()
        there.append(time.monotonic() - began)
        if "memory" in name: # its end is the session's: bombs one after the other
            again = subprocess.Popen(["sh", "-c", 'while :; do "$@"; done', "sh", sbx, "run", "--static"] + options + ["--", "python3", "-c", code], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=open("err", "a"), start_new_session=True)
            p.wait()
        busy = probe()
        began = time.monotonic()
        if "memory" in name:
            os.killpg(again.pid, signal.SIGKILL)
            again.wait()
        else:
            p.send_signal(signal.SIGTERM)
            p.wait()
        gone.append(time.monotonic() - began)
        time.sleep(0.3)
        quiet = probe()
        figures.append(busy + quiet)
        ratios.append((busy[0] / quiet[0], busy[1] / quiet[1]))
    text = open("err").read()
    starts, sleeps = (statistics.median(r[i] for r in ratios) for i in (0, 1))
    ms = [1000 * statistics.median(f[i] for f in figures) for i in range(4)]
    print(f"{'pass' if max(starts, sleeps) <= limit else 'FAIL'}: {name}: a start takes {starts:.2f} times as long ({ms[0]:.2f} ms, quiet {ms[2]:.2f}), a millisecond {sleeps:.2f} ({ms[1]:.2f}, quiet {ms[3]:.2f}); "
          f"there in {max(there):.1f} s, gone in {max(gone):.1f} s", flush=True)
    if message:
        print("pass:" if re.search(message, text, re.S) else "FAIL:", f"{name}: it is explained", flush=True)
    if message is None and "reached" in text or message and not re.search(message, text, re.S):
        print(text[-2000:], flush=True)
    for _ in range(100):
        left = [g for g in groups() if g not in before]
        if not left:
            break
        time.sleep(0.1)
    if left:
        print(f"FAIL: {name}: {left} is left", flush=True)
