package guard

import "bytes"

// What follows judges contents by their first HeadSize bytes. A judgement errs on the side of a credential where the
// two cannot be told apart.

// unseen says whether a text goes on where nobody looks. Keys and passwords stand in no other files of that size.
func unseen(head []byte) bool { return len(head) >= HeadSize && bytes.IndexByte(head, 0) < 0 }

// HoldsPrivateKey finds the header of a private key in PEM or OpenPGP armour: PKCS #1, #8, SEC 1, OpenSSH, encrypted or
// not.
func HoldsPrivateKey(head []byte) bool {
	for {
		i := bytes.Index(head, []byte("-----BEGIN "))
		if i < 0 {
			return false
		}
		head = head[i+len("-----BEGIN "):]
		line := head
		if j := bytes.IndexByte(line, '\n'); j >= 0 {
			line = line[:j]
		}
		if bytes.Contains(line, []byte("PRIVATE KEY")) {
			return true
		}
	}
}

// maxRawKey is the length up to which a file of nothing but letters and digits is taken for a key.
const maxRawKey = 1024

// holdsKey is HoldsPrivateKey for names that end in .key: also a key in DER, and one that is written as nothing but
// hexadecimal or base64.
func holdsKey(head []byte) bool {
	if HoldsPrivateKey(head) || len(head) > 2 && head[0] == 0x30 && head[1]&0x80 != 0 {
		return true
	}
	text := bytes.TrimSpace(head)
	if len(text) < 16 || len(text) > maxRawKey {
		return false
	}
	for _, c := range text {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/', c == '=', c == '-',
			c == '_', c == '\n', c == '\r':
		default:
			return false
		}
	}
	return true
}

// literal says whether a value stands in the file itself: one that is taken from a variable when the file is read is no
// credential.
func literal(value []byte) bool {
	value = bytes.Trim(value, " \t\r\"'")
	return len(value) > 0 && value[0] != '$' && value[0] != '#' && !bytes.EqualFold(value, []byte("null"))
}

// setting finds a key among those given, whatever its case, that has a literal value, in files of lines like "key =
// value" or "key: value".
func setting(head []byte, keys ...string) bool {
	for line := range bytes.Lines(head) {
		line = bytes.TrimLeft(line, " \t-\ufeff")
		i := bytes.IndexAny(line, "=: \t")
		if i <= 0 {
			continue
		}
		key := bytes.ToLower(bytes.Trim(line[:i], `"'`))
		for _, k := range keys {
			if string(key) == k && literal(bytes.TrimLeft(line[i:], "=: \t\n")) {
				return true
			}
		}
	}
	return false
}

// holdsNpmToken finds _authToken, _auth and _password in .npmrc and .yarnrc, for one registry
// (//registry.example/:_authToken) or for all.
func holdsNpmToken(head []byte) bool {
	for line := range bytes.Lines(head) {
		line = bytes.TrimLeft(line, " \t\"\ufeff")
		if len(line) == 0 || line[0] == '#' || line[0] == ';' {
			continue
		}
		lower := bytes.ToLower(line)
		for _, k := range [...]string{"_authtoken", "_auth", "_password"} {
			i := bytes.Index(lower, []byte(k))
			if i < 0 || i > 0 && line[i-1] != ':' {
				continue
			}
			if rest := bytes.TrimLeft(line[i+len(k):], "\" \t="); len(rest) < len(line)-i-len(k) && literal(rest) {
				return true
			}
		}
	}
	return false
}

// holdsYarnToken finds the tokens of .yarnrc.yml.
func holdsYarnToken(head []byte) bool { return setting(head, "npmauthtoken", "npmauthident") }

// holdsPassword finds a password in files of sections and keys.
func holdsPassword(head []byte) bool { return setting(head, "password", "token") }

// holdsCloudPassword finds the key of a cloud account in a file of sections and keys.
func holdsCloudPassword(head []byte) bool {
	return setting(head, "aws_secret_access_key", "aws_session_token", "secret_key", "password", "token")
}

// holdsNetrc finds a password in .netrc, which is a list of words.
func holdsNetrc(head []byte) bool {
	words := bytes.Fields(head)
	for i := range words[:max(len(words)-1, 0)] {
		if bytes.EqualFold(words[i], []byte("password")) || bytes.EqualFold(words[i], []byte("account")) {
			return true
		}
	}
	return false
}

// holdsKubeToken finds what a user of a cluster signs in with.
func holdsKubeToken(head []byte) bool {
	return HoldsPrivateKey(head) || setting(head, "token", "password", "client-key-data", "id-token", "refresh-token")
}

// holdsCloudKey finds the key of a service account, the tokens of a user's or an application's sign-in, and the
// passwords of registries.
func holdsCloudKey(head []byte) bool {
	if !bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n\ufeff"), []byte("{")) {
		return false
	}
	if jsonText(head, "private_key") != "" && (HoldsPrivateKey(head) || jsonText(head, "type") == "service_account") {
		return true
	}
	if jsonText(head, "client_secret") != "" && (jsonText(head, "client_id") != "" ||
		jsonText(head, "refresh_token") != "") {
		return true
	}
	return bytes.Contains(head, []byte(`"auths"`)) && (jsonText(head, "auth") != "" ||
		jsonText(head, "identitytoken") != "")
}

// jsonText is the text that the first key of this name has, as it is spelled; "" if that is something else. The object
// may be cut off.
func jsonText(head []byte, key string) string {
	quoted := []byte(`"` + key + `"`)
	for {
		i := bytes.Index(head, quoted)
		if i < 0 {
			return ""
		}
		head = head[i+len(quoted):]
		rest := bytes.TrimLeft(head, " \t\r\n")
		if len(rest) == 0 || rest[0] != ':' {
			continue
		}
		rest = bytes.TrimLeft(rest[1:], " \t\r\n")
		if len(rest) == 0 || rest[0] != '"' {
			return ""
		}
		text, _, _ := bytes.Cut(rest[1:], []byte(`"`))
		return string(text)
	}
}
