# python3 bench_tool.py SBX ROUNDS: a call of a tool from inside and sbx exec from outside, in turn. Both run /bin/true.
import os, statistics, subprocess, sys, tempfile

LOOP = """
import os, sys, time
null = os.open("/dev/null", os.O_RDWR)
actions = [(os.POSIX_SPAWN_DUP2, null, i) for i in range(3)]
for line in sys.stdin:
    began = time.perf_counter()
    status = os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions), 0)[1]
    print(time.perf_counter() - began, status, flush=True)
"""

sbx, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
home = tempfile.mkdtemp(dir="/var/tmp", prefix="sbx-bench-")
os.makedirs(home + "/.config/sbx")
os.mkdir(home + "/project")
os.chdir(home + "/project")
with open(home + "/.config/sbx/config.toml", "w") as f:
    f.write('[tool.true]\ncommand = ["true"]\n')
env = {"HOME": home, "PATH": "/usr/bin:/bin"}

def runner(*cmd):
    return subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

def once(r):
    r.stdin.write("\n")
    r.stdin.flush()
    seconds, status = r.stdout.readline().split()
    assert status == "0", status
    return 1000 * float(seconds)

subprocess.run([sbx, "run", "--static", "--detach", "--name", "bench", "--", "sleep", "600"], check=True, env=env,
               stdout=subprocess.DEVNULL)
tool = runner(sbx, "exec", "bench", "--", "python3", "-c", LOOP, "/tool/true")
outside = runner("python3", "-c", LOOP, sbx, "exec", "bench", "--", "/bin/true")
once(tool), once(outside) # the first call builds the tool's sandbox
pairs = [(once(outside), once(tool)) for _ in range(rounds)]
print("exec %.2f ms, tool %.2f ms, ratio %.2f" % (*(statistics.median(x) for x in zip(*pairs)),
                                                  statistics.median(t / e for e, t in pairs)))
for r in tool, outside:
    r.stdin.close()
    r.wait()
subprocess.run([sbx, "kill", "bench"], env=env)
subprocess.run(["rm", "-rf", home])
