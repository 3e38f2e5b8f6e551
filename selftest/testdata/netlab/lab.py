# Servers of the lab: HTTP, HTTPS with any name, DNS, UDP echo, a talking TCP port.
import http.server, os, socket, socketserver, ssl, struct, subprocess, sys, threading, time, urllib.parse

class Page(http.server.BaseHTTPRequestHandler):
    def denied(self):
        """a site with a file .auth wants that text as Authorization"""
        try:
            want = open(os.path.join("/mnt/files", self.site(), ".auth")).read().strip()
        except OSError:
            return False
        said = self.headers.get("Authorization") or ""
        with open("/mnt/said.log", "a") as f:
            f.write("%s %s %s\n" % (self.command, self.site(), said))
        if said == want:
            return False
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=lab")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return True
    def do_POST(self):
        if self.denied():
            return
        if self.path.startswith("/v1/"): # a model's API
            asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with open("/mnt/said.log", "a") as f:
                f.write("%s %s %s %s\n" % (self.command, self.path, self.headers.get("X-Api-Key"), len(asked)))
            said = b'{"usage":{"input_tokens":10,"output_tokens":5}}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
            return
        self.cgi(os.path.join("/mnt/files", self.site()))
    def site(self):
        return (self.headers.get("Host") or "").split(":")[0].replace("/", "")
    def cgi(self, top):
        """git http-backend: fetch and push by the smart protocol"""
        path, _, query = self.path.partition("?")
        body = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while n := int(self.rfile.readline(), 16):
                body += self.rfile.read(n + 2)[:n]
            self.rfile.readline()
        elif self.headers.get("Content-Length"):
            body = self.rfile.read(int(self.headers["Content-Length"]))
        env = dict(os.environ, GIT_PROJECT_ROOT=top, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query, REQUEST_METHOD=self.command, HOME="/mnt",
                   CONTENT_TYPE=self.headers.get("Content-Type") or "", HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding") or "", REMOTE_USER="lab",
                   GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
        head, _, out = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE).stdout.partition(b"\r\n\r\n")
        lines = [l.split(": ", 1) for l in head.decode().split("\r\n")]
        self.send_response(next((int(v.split()[0]) for k, v in lines if k == "Status"), 200))
        for k, v in lines:
            if k != "Status":
                self.send_header(k, v)
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)
    def do_PUT(self):
        """takes a body of any length, and says how long it was"""
        left = n = int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, 1 << 20))) or left
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"%d taken, as %s" % (n, (self.headers.get("Authorization") or "").encode()))
    def do_GET(self):
        if self.denied():
            return
        site = os.path.join("/mnt/files", self.site())
        if os.path.isdir(site):
            path = os.path.normpath(urllib.parse.unquote(self.path.partition("?")[0])).lstrip("/")
            if ".git/" in path:
                return self.cgi(site)
            file = os.path.join(site, path)
            if os.path.isdir(file):
                file = os.path.join(file, "index.html")
            body = open(file, "rb").read() if os.path.isfile(file) else b""
            self.send_response(200 if os.path.isfile(file) else 404)
            self.send_header("Content-Type", {".html": "text/html", ".json": "application/json"}.get(os.path.splitext(file)[1], "application/octet-stream"))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        if self.path.startswith("/said"): # what was said is written down, and said back
            said = self.headers.get("Authorization") or ""
            with open("/mnt/said.log", "a") as f:
                f.write("%s %s %s\n" % (self.command, self.site(), said))
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said.encode())
            return
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "http://198.51.100.11/")
            self.end_headers()
            return
        if self.path == "/peer":
            self.send_response(200)
            self.end_headers()
            self.wfile.write((self.client_address[0].replace("::ffff:", "") + "\n").encode())
            return
        if self.path.startswith("/big/"):
            left = int(self.path[5:])
            self.send_response(200)
            self.send_header("Content-Length", str(left))
            self.end_headers()
            part = b"x" * (1 << 20)
            while left:
                left -= self.wfile.write(part[:left])
            return
        body = ("page of %s at %s\n" % (self.headers.get("Host"), self.connection.getsockname()[0])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a):
        pass

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6") else socket.AF_INET
    request_queue_size = 128

def http_on(port, tls=None):
    s = Server(("::" if Server.address_family == socket.AF_INET6 else "", port), Page)
    if tls:
        s.socket = tls.wrap_socket(s.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=s.serve_forever, daemon=True).start()

count = {}
def answer(name, typ):
    """records of a name: (name, type, ttl, data)"""
    a = lambda ip, ttl=60, n=name: (n, 1, ttl, socket.inet_aton(ip))
    cname = lambda to: (name, 5, 60, to)
    count[name] = count.get(name, 0) + 1
    if name == "reb.test":
        return [a("127.0.0.1" if count[name] % 2 == 0 else "198.51.100.12", 0)] if typ == 1 else []
    if name == "two-faced.test":
        return [a("127.0.0.1"), a("198.51.100.12")] if typ == 1 else []
    table = {"one.test": "198.51.100.10", "two.test": "198.51.100.10", "other.test": "198.51.100.11", "private.test": "10.9.9.9", "meta.test": "169.254.169.254", "host.test": "203.0.113.2",
             "loop.test": "127.0.0.1", "proxy.test": "198.51.100.12"}
    if name in table:
        return [a(table[name])] if typ == 1 else []
    if name == "short.test":
        return [a("198.51.100.12", 1)] if typ == 1 else []
    if name == "alias.test":
        return [cname("one.test")] + ([a("198.51.100.10", n="one.test")] if typ == 1 else []) + [a("10.9.9.9", n="stray.test")]
    if name == "badalias.test":
        return [cname("other.test"), a("198.51.100.11", n="other.test")]
    if name == "circle.test":
        return [cname("circle.test")]
    if name == "six.test":
        return [(name, 28, 60, socket.inet_pton(socket.AF_INET6, "2001:db8:2::10"))] if typ == 28 else []
    if name.endswith((".wild.test", ".files.test")):
        return [a("198.51.100.12")] if typ == 1 else []
    if name == "many.test":
        return [a("198.51.101.%d" % i) for i in range(1, 120)] if typ == 1 else []
    return None

def labels(name):
    return b"".join(bytes([len(p)]) + p.encode() for p in name.split(".") if p) + b"\0"

def reply(q):
    i, parts = 12, []
    while q[i]:
        parts.append(q[i + 1:i + 1 + q[i]].decode())
        i += q[i] + 1
    name, typ = ".".join(parts).lower(), struct.unpack(">H", q[i + 1:i + 3])[0]
    with open(os.environ["LABLOG"], "a") as f:
        f.write("%s %d\n" % (name, typ))
    rs = answer(name, typ)
    body = b""
    for n, t, ttl, d in rs or []:
        d = labels(d) if t == 5 else d
        body += labels(n) + struct.pack(">HHIH", t, 1, ttl, len(d)) + d
    return q[:2] + struct.pack(">HHHHH", 0x8180 | (3 if rs is None else 0), 1, len(rs or []), 0, 0) + q[12:i + 5] + body

def dns_udp(s):
    while True:
        q, who = s.recvfrom(4096)
        r = reply(q)
        s.sendto(r if len(r) <= 512 else r[:2] + struct.pack(">H", 0x8380) + r[4:6] + b"\0\0\0\0\0\0" + q[12:], who)

def dns_tcp(s):
    while True:
        c, _ = s.accept()
        q = c.recv(4096)
        if len(q) > 2:
            r = reply(q[2:])
            c.sendall(struct.pack(">H", len(r)) + r)
        c.close()

def echo(s):
    while True:
        b, who = s.recvfrom(4096)
        s.sendto(b"echo " + b, who)

def talk(s):
    while True:
        c, _ = s.accept()
        c.sendall(b"SSH-2.0-lab\r\n")
        c.close()

def start(f, kind, addr, port):
    s = socket.socket(socket.AF_INET, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((addr, port))
    if kind == socket.SOCK_STREAM:
        s.listen(64)
    threading.Thread(target=f, args=(s,), daemon=True).start()

os.chdir("/mnt")
def openssl(*args):
    subprocess.run(("openssl",) + args, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

# ca.pem is whom clients can be told to trust.
key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=lab CA")
openssl("req", *key, "-keyout", "key.pem", "-out", "cert.csr", "-subj", "/CN=lab")
with open("cert.ext", "w") as f:
    f.write("subjectAltName=DNS:one.test,DNS:two.test,DNS:other.test,DNS:*.files.test")
openssl("x509", "-req", "-in", "cert.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "1", "-days", "2", "-extfile", "cert.ext", "-out", "cert.pem")
ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
ctx.load_cert_chain("cert.pem", "key.pem")
http_on(80)
http_on(8080)
http_on(443, ctx)
start(dns_udp, socket.SOCK_DGRAM, "198.51.100.53", 53)
start(dns_tcp, socket.SOCK_STREAM, "198.51.100.53", 53)
for port in (443, 4433):
    for a in ("10", "11", "12"):
        start(echo, socket.SOCK_DGRAM, "198.51.100." + a, port)
start(talk, socket.SOCK_STREAM, "", 22)
open(sys.argv[1], "w").close()
time.sleep(600)
