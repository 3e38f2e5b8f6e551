# What is said on the session's own device.
import signal, socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
open("sniffing", "w").write("x")
seen = {"placeholder": 0, "value": 0}
class Over(Exception): pass
def over(*a): raise Over
signal.signal(signal.SIGINT, over)
try:
    while True:
        b = s.recv(1 << 17)
        seen["placeholder"] += b"sbx-placeholder-" in b
        seen["value"] += b"REALVALUE" in b
except Over:
    for k, v in seen.items():
        print("session packets", k, v)
