package decoy

import (
	"crypto/rand"
	"encoding/base64"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/shared/mark"
)

// kind is what is believed of a file with one of the names. In text %M is the mark, and %R what else is random.
type kind struct {
	names []string
	text  string
}

// kinds are tried from the first on; the last fits every name.
func kinds() []kind {
	return []kind{
		{[]string{"id_*", "*.pem", "*.key", "*_key", "*.ppk"}, privateKey},
		{[]string{".env*", "*.env", ".dev.vars*"},
			"APP_ENV=production\nDATABASE_URL=postgres://app:%M@db.internal:5432/app\nSECRET_KEY=%R\n"},
		{[]string{".aws/*", ".s3cfg", ".boto"}, "[default]\naws_access_key_id = AKIA%M\naws_secret_access_key = %R\n"},
		{[]string{".netrc", "_netrc"}, "machine git.internal login deploy password %M%R\n"},
		{[]string{".git-credentials", "git/credentials"}, "https://deploy:%M%R@git.internal\n"},
		{[]string{".pgpass"}, "db.internal:5432:*:app:%M\n"},
		{[]string{".npmrc"}, "//npm.internal/:_authToken=npm_%M%R\n"},
		{[]string{"*.json"}, "{\"token_type\": \"Bearer\", \"access_token\": \"%M%R\"}\n"},
		{[]string{"*.toml"}, "[auth]\ntoken = \"%M%R\"\n"},
		{[]string{"*.yml", "*.yaml", ".kube/*"}, "user: deploy\ntoken: %M%R\n"},
		{[]string{"*"}, "user = deploy\npassword = %M%R\n"},
	}
}

// privateKey begins as one of OpenSSH's does. It opens nothing.
const privateKey = "-----BEGIN OPENSSH PRIVATE KEY-----\n" +
	"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n" +
	"QyNTUxOQAAACD%M%R\n%R%R\n-----END OPENSSH PRIVATE KEY-----\n"

// Make makes the contents of the decoy that stands at p, and the mark in them.
func Make(p string) (text, m string) {
	m = rand.Text()[:mark.Len]
	for _, k := range kinds() {
		if slices.ContainsFunc(k.names, func(name string) bool { return fits(name, p) }) {
			text = strings.ReplaceAll(k.text, "%M", m)
			break
		}
	}
	for strings.Contains(text, "%R") {
		var b [30]byte
		_, _ = rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
		text = strings.Replace(text, "%R", base64.RawStdEncoding.EncodeToString(b[:]), 1)
	}
	return text, m
}

// fits compares a pattern with the last parts of a path.
func fits(pattern, p string) bool {
	last := path.Base(p)
	if strings.Contains(pattern, "/") {
		last = path.Base(path.Dir(p)) + "/" + last
	}
	ok, _ := path.Match(pattern, last)
	return ok
}
