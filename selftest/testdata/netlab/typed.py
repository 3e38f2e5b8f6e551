# Types the passphrase that a command asks for, on a terminal of its own.
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen, typed = b"", 0
while True:
    try:
        b = os.read(fd, 4096)
    except OSError:
        break
    if not b:
        break
    seen += b
    if typed < seen.count(b" your secrets: ") + seen.count(b"the same again: "):
        typed += 1
        os.write(fd, b"open sesame\n")
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
if status:
    print(seen.decode())
sys.exit(status)
