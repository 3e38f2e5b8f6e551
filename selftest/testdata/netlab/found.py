# What is looked for, in each way that it can be written, and how often it was found. grep looks: it is many times as fast.
import subprocess, tempfile
from forms import forms
WANTED = {"value": forms(b"REALVALUE"), "control": forms(b"OTHERVALUE"), "placeholder": {"raw": b"sbx-placeholder-"}}
LONGEST = 64
class Found(dict):
    names = {text: (what, form) for what, ways in WANTED.items() for form, text in ways.items()}
    list = tempfile.NamedTemporaryFile()
    list.write(b"".join(text + b"\n" for text in names))
    list.flush()
    def __init__(self, where):
        self.where, self.forms = where, {k: set() for k in WANTED}
        self.update(dict.fromkeys(WANTED, 0))
    def look(self, parts):
        out = tempfile.TemporaryFile() # a pipe may be full while nobody reads it yet
        grep = subprocess.Popen(["grep", "-aoF", "-f", self.list.name], stdin=subprocess.PIPE, stdout=out, env={"LC_ALL": "C"})
        for b in parts:
            grep.stdin.write(b + b"\n")
        grep.communicate()
        out.seek(0)
        for text in out.read().split(b"\n")[:-1]:
            what, form = self.names[text]
            self[what] += 1
            self.forms[what].add(form)
    def tell(self):
        for what in WANTED:
            print(self.where, what, self[what], *sorted(self.forms[what]) if what != "placeholder" else [], flush=True)
