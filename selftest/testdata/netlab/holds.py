# The control of scan.py and sniff.py: holds another value in each form, in its memory, in files and in a packet, and exits.
import os, socket, sys
from forms import forms
text = bytes(b ^ 1 for b in b"NUIDSW@MTD") # not the value itself: this file is in the session
all = b"\0\xff".join(b"ab" + f for f in forms(text).values())
for dir in sys.argv[1:]:
    open(os.path.join(dir, "held"), "wb").write(all)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(all, ("127.0.0.1", 9))
os._exit(0) # what is freed at an orderly end is written over
