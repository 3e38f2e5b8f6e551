# What is said on the session's own device. The end of what a connection said before is looked at again with what it says next.
import signal, socket
from found import Found, LONGEST
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
open("sniffing", "w").write("x")
all, said = [], {}
class Over(Exception): pass
def over(*a): raise Over
signal.signal(signal.SIGINT, over)
try:
    while True:
        b = s.recv(1 << 17)
        all.append(b)
        ip = b[14:]
        if b[12:14] == b"\x08\0" and ip[9] == 6:
            tcp = ip[(ip[0] & 15) * 4:int.from_bytes(ip[2:4], "big")]
            flow, data = ip[12:20] + tcp[:4], tcp[(tcp[12] >> 4) * 4:]
            if data:
                was = said.get(flow, b"")
                all.append(was + data[:LONGEST])
                said[flow] = (was + data)[-LONGEST:]
except Over:
    seen = Found("session packets")
    seen.look(all)
    seen.tell()
