# The ways in which a text can be written where it is looked for.
import base64
def forms(text):
    out = {"raw": text, "utf-16": text.decode().encode("utf-16-le"), "hex": text.hex().encode(), "HEX": text.hex().upper().encode()}
    for k in range(3): # what stands before it (user:) moves it, and what follows changes the last digit
        out["base64+%d" % k] = base64.b64encode(bytes(k) + text + b"\0\0")[(k * 8 + 5) // 6:(k + len(text)) * 8 // 6]
    out["url"] = b"".join(b"%%%02X" % c for c in text)
    out["URL"] = out["url"].lower()
    return out
