# Saves without end, as editors do, and says after each time that all of it is done.
import os, sys
def save(name, text):
    with open(name + ".tmp", "w") as f: f.write(text)
    os.rename(name + ".tmp", name)
n = 0
while True:
    n += 1
    text = f"{n}\n" * 200
    save("saved", text)
    save(".env", text) # the session's own under the name of a secret
    os.rename(".env", ".env.local"); os.rename(".env.local", ".env")
    with open("log", "a") as f: f.write(f"{n}\n")
    os.mkdir("made"); save("made/file", text); os.rename("made", "moved"); os.unlink("moved/file"); os.rmdir("moved")
    late = "absent" # what the host makes while this runs
    try: open(".env.host").close(); late = "open"
    except FileNotFoundError: pass
    except PermissionError: late = "refused"
    os.write(1, f"{n} {late}\n".encode())
