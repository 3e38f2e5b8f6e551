# inside: carries out lines "ID WORKER OP PATH", each worker a process of its own that lives until "0 WORKER end -".
# relay: joins a session's socket, in this directory, with standard input and output.
import errno, os, signal, socket, sys, threading

def act(op, path, id):
    if op == "read":
        fd = os.open(path, os.O_RDONLY); os.read(fd, 9); os.close(fd)
    elif op == "list":
        if "o" not in os.listdir(path) and os.path.basename(path).isdigit(): raise OSError(errno.ENODATA, "no more than was granted")
    elif op == "stat": os.stat(path)
    elif op == "write": os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
    elif op == "create": os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    elif op == "connect":
        s = socket.socket(socket.AF_UNIX); s.connect(path); s.close()
    elif op == "exec":
        if os.fork() == 0: return
        try: os.execv(path, ["echo", id, "ok"]) # the worker itself asks
        except OSError as e: say(id, e); os._exit(0)

def say(id, e=None):
    os.write(1, f"{id} {errno.errorcode[e.errno] if e else 'ok'}\n".encode())

def worker(lines):
    for line in lines:
        id, _, op, path = line.split(" ", 3)
        try: act(op, path.rstrip("\n"), id)
        except OSError as e: say(id, e)
        else:
            if op != "exec": say(id)
    os._exit(0)

def inside():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    workers = {}
    say("ready")
    for line in sys.stdin:
        name, op = line.split(" ", 3)[1:3]
        if op == "end":
            workers.pop(name).close()
            continue
        if name not in workers:
            r, w = os.pipe()
            if os.fork() == 0:
                for other in workers.values(): os.close(other.fileno())
                os.close(w); worker(os.fdopen(r))
            os.close(r); workers[name] = os.fdopen(w, "w", buffering=1)
        workers[name].write(line)

def relay():
    s = socket.socket(socket.AF_UNIX); s.connect("sock")
    def send():
        for line in sys.stdin.buffer: s.sendall(line)
        s.shutdown(socket.SHUT_WR)
    threading.Thread(target=send, daemon=True).start()
    while data := s.recv(1 << 16): os.write(1, data)
    os._exit(0)

globals()[sys.argv[1]]()
