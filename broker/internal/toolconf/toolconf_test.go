package toolconf

import (
	"strings"
	"testing"
)

// row is a file and what is shown of it, without the header; "-" where it is not shown at all.
type row struct{ name, text, want string }

func check(t *testing.T, f func([]byte) (string, bool), rows []row) {
	t.Helper()
	for _, r := range rows {
		got, ok := f([]byte(r.text))
		if !ok {
			got = "-"
		}
		got = strings.TrimPrefix(strings.TrimPrefix(got, header), "<!-- "+strings.Trim(header, "# \n")+" -->\n")
		if got != r.want {
			t.Errorf("%s: %q is shown as %q, want %q", r.name, r.text, got, r.want)
		}
	}
}

func TestNpmrc(t *testing.T) {
	check(t, Npmrc, []row{
		{"empty", "", "-"},
		{"token", "//r.example/:_authToken=npm_abc\n", "-"},
		{"every other credential", "_auth=YTpi\n_authToken=x\n_password=cA==\nusername=u\nemail=e@x\n//r/:_auth=x\n" +
			"//r/:_password=x\n//r/:username=u\n//r/:certfile=/c\n//r/:keyfile=/k\nkey=\"-----BEGIN PRIVATE\"\notp=123456\n" +
			"cert=x\n", "-"},
		{"registry", "registry=https://r.example/npm/\n", "registry=https://r.example/npm/\n"},
		{"scope", " @my-co:registry = https://r.example:8443/n\n", "@my-co:registry=https://r.example:8443/n\n"},
		{"password in an address", "proxy=http://u:p@proxy.example:3128\nhttps-proxy=http://u@proxy:1/\n",
			"proxy=http://proxy.example:3128\nhttps-proxy=http://proxy:1/\n"},
		{"password with an at", "proxy=http://u:p@q@proxy.example:3128\n", "proxy=http://proxy.example:3128\n"},
		{"token in a path", "registry=https://dl.example/aB3dE6gH9jK2mN5p/org/npm/\n", "-"},
		{"token in a query", "registry=https://r.example/?t=x\nproxy=http://p:1/?t\n", "-"},
		{"token in a host", "registry=https://aB3dE6gH9jK2mN5p.r.example/\n", "-"},
		{"UUID", "registry=https://r.example/3f2504e0-4f89-11d3-9a0c-0305e82c3301/\n", "-"},
		{"escapes", "registry=https://r.example/%41/\nproxy=\"http://p\\u003a1\"\n", "-"},
		{"variable", "registry=https://${HOST}/\ncafile=${HOME}/ca.pem\n", "cafile=${HOME}/ca.pem\n"},
		{"comments and quotes", "; x\n# x\nregistry=\"https://r.example/\" \ncafile=/c.pem ; _authToken=x\n",
			"registry=https://r.example/\ncafile=/c.pem\n"},
		{"switches", "strict-ssl=false\nfund\nloglevel=warn\nsave-prefix=^\nstrict-ssl=npm_aB3dE6gH9jK2mN5p\n",
			"strict-ssl=false\nfund=true\nloglevel=warn\nsave-prefix=^\n"},
		{"lists", "noproxy[]=a.example\nnoproxy=a,.b.example\nomit[]=dev\n",
			"noproxy[]=a.example\nnoproxy=a,.b.example\nomit[]=dev\n"},
		{"a key that is a place and holds a token", "cafile=npm_aB3dE6gH9jK2mN5p\ncache=/c@x\n", "-"},
		{"section", "[//r.example/]\n_authToken=x\n", "-"},
		{"quoted key", "\"registry\"=https://r.example/\n", "-"},
		{"key with a space", "regi stry=https://r.example/\n", "-"},
		{"no text", "registry=\xff\n", "-"},
		{"NUL", "a\x00=b\n", "-"},
		{"carriage returns", "registry=https://a/\r\nfund=true\r//r/:_authToken=x\r\n", "registry=https://a/\n"},
		{"line separator", "fund=true\u2028_authToken=x\n", "-"},
	})
}

func TestPip(t *testing.T) {
	check(t, Pip, []row{
		{"empty", "", "-"},
		{"index", "[global]\nindex-url = https://u:p@pypi.example/simple\n",
			"[global]\nindex-url = https://pypi.example/simple\n"},
		{"underscores, colon, case", "[install]\nINDEX_URL: https://pypi.example/simple\n",
			"[install]\nindex-url = https://pypi.example/simple\n"},
		{"more lines", "[global]\nextra-index-url =\n    https://u:p@a.example/s\n    # x\n    https://b.example/s\n" +
			"  https://c.example/aB3dE6gH9jK2mN5p/s\n", "[global]\nextra-index-url = https://a.example/s\n" +
			"    https://b.example/s\n"},
		{"certificates and proxies", "[global]\ncert = /etc/ca.pem\nclient-cert = /key.pem\nproxy = p.example:3128\n",
			"[global]\ncert = /etc/ca.pem\nproxy = p.example:3128\n"},
		{"proxy with a password", "[global]\nproxy = u:p@p.example:3128\ntimeout = 60\n", "[global]\ntimeout = 60\n"},
		{"comments", "# t0ken\n[global]\n; t0ken\ncert = /etc/ca.pem # t0ken\ncache-dir = /c ; t0ken\n" +
			"proxy = p.example:1 ; t0ken\ntimeout = 60 # t0ken\n", "[global]\nproxy = p.example:1\n"},
		{"hosts", "[global]\ntrusted-host = a.example\n    b.example:8080\n",
			"[global]\ntrusted-host = a.example\n    b.example:8080\n"},
		{"unknown options", "[global]\ntoken = x\npassword: y\nkeyring-provider = subprocess\n", "-"},
		{"a second line that is another value", "[global]\ntimeout = 60\n    secret words\n", "-"},
		{"only", "[install]\nno-binary = :all:\n", "[install]\nno-binary = :all:\n"},
		{"before a section", "index-url = https://a/\n", "-"},
		{"no option", "[global]\nwhat is this\n", "-"},
		{"a line that goes on with nothing", "[global]\n  x\n", "-"},
		{"odd section", "[glo bal]\n", "-"},
		{"section that goes on", "[global] x\n", "-"},
	})
}

func TestMaven(t *testing.T) {
	all := func(s string) string { return "<settings>\n" + s + "</settings>\n" }
	check(t, Maven, []row{
		{"nothing", "", "-"},
		{"another document", "<project/>", "-"},
		{"servers", `<?xml version="1.0"?><settings xmlns="http://maven"><servers><server><id>r</id><password>p</password>` +
			`</server></servers></settings>`, all("")},
		{"mirror", "<settings><mirrors><mirror><id>m</id><url>https://u:p@r.example/m</url><mirrorOf>*,!in</mirrorOf>" +
			"</mirror></mirrors></settings>",
			all("  <mirrors>\n    <mirror>\n      <id>m</id>\n      <url>https://r.example/m</url>\n" +
				"      <mirrorOf>*,!in</mirrorOf>\n    </mirror>\n  </mirrors>\n")},
		{"proxy", "<settings><proxies><proxy><host>p.example</host><port>80</port><username>u</username>" +
			"<password>p</password></proxy></proxies></settings>",
			all("  <proxies>\n    <proxy>\n      <host>p.example</host>\n      <port>80</port>\n    </proxy>\n  </proxies>\n")},
		{"properties", "<settings><profiles><profile><id>p</id><properties><t>secret</t></properties></profile></profiles>" +
			"</settings>", all("  <profiles>\n    <profile>\n      <id>p</id>\n    </profile>\n  </profiles>\n")},
		{"headers of a server in a mirror", "<settings><mirrors><mirror><configuration><x>s</x></configuration>" +
			"</mirror></mirrors></settings>", all("  <mirrors>\n    <mirror>\n    </mirror>\n  </mirrors>\n")},
		{"comments and attributes", `<settings a="secret"><!-- <password>p</password> --><offline>true</offline></settings>`,
			all("  <offline>true</offline>\n")},
		{"an address that is left out",
			"<settings><mirrors><mirror><url>https://r/?t=x</url></mirror></mirrors></settings>", "-"},
		{"entities", `<!DOCTYPE s [<!ENTITY x SYSTEM "file:///etc/passwd">]><settings><offline>&x;</offline></settings>`, "-"},
		{"escaped", "<settings><localRepository>/a&amp;b</localRepository></settings>",
			all("  <localRepository>/a&amp;b</localRepository>\n")},
		{"cut off", "<settings><offline>true</offline>", "-"},
		{"text between", "<settings>secret</settings>", "-"},
		{"two", "<settings/><settings/>", "-"},
		{"element in a value", "<settings><offline><x/></offline></settings>", "-"},
	})
}

func TestCargo(t *testing.T) {
	check(t, Cargo, []row{
		{"nothing to leave out", "[build]\njobs = 4\n[target.x86_64-unknown-linux-gnu]\nlinker = \"clang\"\n",
			"[build]\n  jobs = 4\n\n[target]\n  [target.x86_64-unknown-linux-gnu]\n    linker = \"clang\"\n"},
		{"comments", "# token = \"x\"\n[build] # [registry] token = \"x\"\njobs = 4 # \"x\"\nrustflags = [\n# \"x\"\n" +
			"\"-g\"]\n",
			"[build]\n  jobs = 4\n  rustflags = [\"-g\"]\n"},
		{"tokens", "[registry]\ntoken = \"x\"\ndefault = \"co\"\n[registries.co]\n" +
			"index = \"sparse+https://u:p@r.example/i/\"\ntoken = \"x\"\ncredential-provider = [\"a\", \"b\"]\n",
			"[registries]\n  [registries.co]\n    index = \"sparse+https://r.example/i/\"\n\n[registry]\n  default = \"co\"\n"},
		{"proxy", "[http]\nproxy = \"u:p@proxy:80\"\ncainfo = \"/ca.pem\"\n", "[http]\n  cainfo = \"/ca.pem\"\n"},
		{"proxy without a password", "[http]\nproxy = \"socks5://proxy:80\"\n",
			"[http]\n  proxy = \"socks5://proxy:80\"\n"},
		{"mirror", "[source.crates-io]\nreplace-with = \"m\"\n[source.m]\nregistry = \"https://u:p@r.example/i\"\n",
			"[source]\n  [source.crates-io]\n    replace-with = \"m\"\n  [source.m]\n    registry = \"https://r.example/i\"\n"},
		{"environment", "[env]\nAPI_TOKEN = \"x\"\nA = \"b\"\nDB = \"pg://u:p@h/d\"\nK = \"aB3dE6gH9jK2mN5p\"\n",
			"[env]\n  A = \"b\"\n  DB = \"pg://h/d\"\n"},
		{"unknown table", "[vault]\nx = \"y\"\n", ""},
		{"a secret in a table that is shown", "[net]\nretry = 2\npassword = \"p\"\n", "[net]\n  retry = 2\n"},
		{"no TOML", "[registries\n", "-"},
	})
}

// safe fails where something that a parser has let through looks like a credential, or is read in another way by the
// same parser.
func safe(t *testing.T, f func([]byte) (string, bool), text []byte) {
	const marker = "s3cretS3CRETs3cretS3CRET"
	shown, ok := f(text)
	if !ok {
		if shown != "" {
			t.Fatalf("%q is not shown, and is: %q", text, shown)
		}
		return
	}
	if strings.Contains(shown, marker) && !strings.Contains(shown, "/"+marker) {
		t.Errorf("%q is shown as %q", text, shown)
	}
	again, ok := f([]byte(shown))
	if !ok || again != shown {
		t.Errorf("%q is shown as %q, and that as %q, %t", text, shown, again, ok)
	}
}

func FuzzNpmrc(f *testing.F) {
	f.Add([]byte("registry=https://u:s3cretS3CRETs3cretS3CRET@r.example/\n//r/:_authToken=x\nfund\n"))
	f.Add([]byte("noproxy[]=s3cretS3CRETs3cretS3CRET\nproxy='http://a:1'\n; x\n"))
	f.Fuzz(func(t *testing.T, text []byte) { safe(t, Npmrc, text) })
}

func FuzzPip(f *testing.F) {
	f.Add([]byte("[global]\nindex-url = https://u:s3cretS3CRETs3cretS3CRET@r.example/\n  /x\ntimeout: 5\n"))
	f.Fuzz(func(t *testing.T, text []byte) { safe(t, Pip, text) })
}

func FuzzMaven(f *testing.F) {
	f.Add([]byte("<settings><mirrors><mirror><url>https://u:s3cretS3CRETs3cretS3CRET@r/</url>" +
		"</mirror></mirrors></settings>"))
	f.Fuzz(func(t *testing.T, text []byte) { safe(t, Maven, text) })
}

func FuzzCargo(f *testing.F) {
	f.Add([]byte("[http]\nproxy = \"u:s3cretS3CRETs3cretS3CRET@p:1\"\n[registries.a]\nindex = \"sparse+https://r/\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		shown, ok := Cargo(text)
		if again, ok2 := Cargo([]byte(shown)); ok && (!ok2 || again != shown) {
			t.Errorf("%q is shown as %q, and that as %q, %t", text, shown, again, ok2)
		}
	})
}
