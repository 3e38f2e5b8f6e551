# Runs a command on a terminal of its own and answers what it asks there: the question whether sudo may be used with $ANSWER
# or "y", sudo's for a password with $PASSWORD. Its output comes without carriage returns, its exit status is the command's.
import os, pty, sys
answers = [(b"[y/N] ", os.environ.get("ANSWER", "y").encode() + b"\n"), (b"password for tester: ", os.environ.get("PASSWORD", "").encode() + b"\n")]
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen = b""
while True:
    try:
        part = os.read(master, 65536)
    except OSError:
        break
    if not part:
        break
    seen += part
    for question, answer in answers:
        if seen.endswith(question):
            os.write(master, answer)
    sys.stdout.buffer.write(part.replace(b"\r", b""))
    sys.stdout.buffer.flush()
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
