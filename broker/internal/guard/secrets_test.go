package guard

import (
	"strings"
	"testing"
)

const pemKey = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"

func TestSecretAt(t *testing.T) {
	for rel, want := range map[string]string{
		".env": ".env*", "sub/.env": ".env*", ".env.local": ".env*", ".ENV": ".env*", ".e\u200cnv": ".env*",
		".env.production":           ".env*",
		".envs/.production/.django": ".env*", ".env.example": "", ".env.local.sample": "", ".env.dist": "", ".envrc": "",
		"env": "", "src/env.go": "",
		"prod.env": "*.env", "docker/app.env": "*.env", "example.env": "", "a.envelope": "",
		"id_rsa": "id_rsa", "deploy/id_ed25519": "id_ed25519", "id_rsa.pub": "", "server.pem": "*.pem", "tls.key": "*.key",
		"config/master.key": "master.key",
		"id_rsa.old":        "id_*", "id_deploy": "id_*", "id_map.go": "id_*", "id_x.env": "*.env",
		"ssh_host_rsa_key": "ssh_host_*", "ssh_host_rsa_key.pub": "",
		".aws/credentials": "credentials", ".cargo/credentials.toml": "credentials.toml",
		"monkey": "", "x.keys": "", "terraform.tfstate": "*.tfstate", "terraform.tfstate.backup": "*.tfstate.backup",
		"main.tf":   "",
		"store.p12": "*.p12", "app.keystore": "*.keystore", ".npmrc": ".npmrc", "packages/a/.npmrc": ".npmrc",
		".netrc": ".netrc", ".pypirc": ".pypirc",
		"service-account.json": "*.json", "package.json": "", "tsconfig.json": "", "kubeconfig": "kubeconfig",
		"prod.kubeconfig":       "*.kubeconfig",
		"node_modules/pkg/.env": "", "web/node_modules/pkg/test/key.pem": "", "vendor/x/id_rsa": "",
		"lib/python3/site-packages/certifi/cacert.pem": "",
		"#.env#": ".env*", ".prod.env.swp": "*.env", "prod.env~": "*.env", "prod.env.bak": "*.env", "prod.env.~2~": "*.env",
		".id_rsa.swp": "id_rsa", ".npmrc~": ".npmrc", ".npmrc.swp": ".npmrc", ".netrc.swo": ".netrc",
		".master.key.un~": "master.key", "terraform.tfstate.orig": "*.tfstate", "key.pem.old": "*.pem",
		"a.json~": "*.json", "package.json~": "", "#example.env#": "", ".main.go.swp": "", "a~": "", "~": "", "##": "",
		".vault_pass.txt": ".vault_pass*", ".dev.vars": ".dev.vars*", ".s3cfg": ".s3cfg", ".swp": "", "..swp": "",
		"node_modules": "", ".env/bin/python": ".env*", "testdata/key.pem": "*.pem", "": "",
	} {
		c := SecretAt(rel, false)
		got := ""
		if c.Secret != nil {
			got = c.Pattern
		}
		if got != want {
			t.Errorf("%q: %q, want %q", rel, got, want)
		}
	}
	if c := SecretAt(".envs/x/y", false); c.Keeper != ".envs" {
		t.Errorf("keeper %q", c.Keeper)
	}
	if c := SecretAt("a/vendor/b/.env", false); c.In != "a/vendor" {
		t.Errorf("in %q", c.In)
	}
	if SecretOf("server.pem", true) != nil || SecretOf(".env", true) == nil {
		t.Error("a directory is meant by .env* alone")
	}
}

func TestSecretsHaveReasons(t *testing.T) {
	for _, s := range Secrets() {
		name := strings.ReplaceAll(s.Pattern, "*", "x.")
		if strings.HasPrefix(s.Pattern, "*") {
			name = "x" + s.Pattern[1:]
		} else if strings.HasSuffix(s.Pattern, "*") {
			name = s.Pattern[:len(s.Pattern)-1]
		}
		if got := SecretOf(name, false); s.Why == "" || got == nil || got.Pattern != s.Pattern {
			t.Errorf("%s: %q is %v, reason %q", s.Pattern, name, got, s.Why)
		}
	}
}

func TestContents(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 2)
	for _, c := range []struct {
		name, file, text string
		want             bool
	}{
		{"key", "a.pem", pemKey, true},
		{"RSA key", "a.pem", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n", true},
		{"a swap file", ".account.json.swp",
			"b0VIM 9.0\x00\x00}\x00  \"private_key\": \"-----BEGIN PRIVATE KEY-----\\nx\"\x00{\x00", true},
		{"a swap file of nothing secret", ".main.json.swp", "b0VIM 9.0\x00\x00}\x00  \"a\": 1\x00{\x00", false},
		{"a swap file of passwords", ".netrc.swp", "b0VIM 9.0\x00\x00machine x login y password z\x00", true},
		{"OpenSSH key", "a.pem", "-----BEGIN OPENSSH PRIVATE KEY-----\n", true},
		{"key under a name of its own", "id_deploy", "-----BEGIN OPENSSH PRIVATE KEY-----\n", true},
		{"source", "id_map.go", "package id\n", false},
		{"cloud account", "credentials", "[default]\naws_access_key_id = a\naws_secret_access_key = b\n", true},
		{"no account", "credentials", "how to get credentials\n", false},
		{"certificate", "a.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", false},
		{"certificate and key", "a.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n" + pemKey, true},
		{"public key", "a.pem", "-----BEGIN PUBLIC KEY-----\n", false},
		{"parameters", "a.pem", "-----BEGIN DH PARAMETERS-----\n", false},
		{"empty", "a.pem", "", false},
		{"certificates", "a.pem", strings.Repeat("-----BEGIN CERTIFICATE-----\n", 20000), false},
		{"certificates, and what nobody looks at", "a.pem", strings.Repeat("-----BEGIN CERTIFICATE-----\n", 40000)[:HeadSize],
			true},
		{"large slides", "a.key", strings.Repeat("PK\x03\x04\x00", HeadSize)[:HeadSize], false},
		{"carriage returns", "a.pem", strings.ReplaceAll(pemKey, "\n", "\r\n"), true},
		{"key in PEM", "a.key", pemKey, true},
		{"public OpenPGP", "a.key", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n", false},
		{"private OpenPGP", "a.asc", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n", true},
		{"hexadecimal", "production.key", hex + "\n", true},
		{"key in DER", "a.key", "0\x82\x01\x02", true},
		{"slides", "a.key", "PK\x03\x04 presentation", false},
		{"prose", "a.key", "The key to the map of the town.\n", false},
		{"npm token", ".npmrc", "//registry.example/:_authToken=npm_0123\n", true},
		{"npm bare", ".npmrc", "_auth = abc\n", true},
		{"npm password", ".npmrc", "//registry.example/:_password=\"abc\"\n", true},
		{"npm variable", ".npmrc", "//registry.example/:_authToken=${NPM_TOKEN}\n", false},
		{"npm comment", ".npmrc", "# //registry.example/:_authToken=x\n", false},
		{"npm settings", ".npmrc", "save-exact=true\nregistry=https://registry.example/\nalways-auth=true\n", false},
		{"yarn 1", ".yarnrc", "\"//registry.example/:_authToken\" \"abc\"\n", true},
		{"yarn", ".yarnrc.yml", "npmRegistries:\n  \"//registry.example\":\n    npmAuthToken: abc\n", true},
		{"yarn variable", ".yarnrc.yml", "npmAuthToken: \"${TOKEN}\"\n", false},
		{"yarn settings", ".yarnrc.yml", "nodeLinker: node-modules\n", false},
		{"pypi", ".pypirc", "[pypi]\nusername = __token__\npassword = pypi-x\n", true},
		{"pypi index", ".pypirc", "[distutils]\nindex-servers = pypi\n", false},
		{"netrc", ".netrc", "machine a.example\nlogin x\npassword y\n", true},
		{"netrc one line", ".netrc", "machine a.example login x password y", true},
		{"netrc without", ".netrc", "machine a.example login x\n", false},
		{"service account", "a.json",
			"{\n \"type\": \"service_account\",\n \"private_key\": \"-----BEGIN PRIVATE KEY-----\\nx\"\n}", true},
		{"key first", "a.json", "{\"private_key\":\"x\",\"type\":\"service_account\"}", true},
		{"empty key", "a.json", "{\"type\": \"service_account\", \"private_key\": \"\"}", false},
		{"user", "a.json", `{"client_id":"a","client_secret":"b","refresh_token":"c","type":"authorized_user"}`, true},
		{"docker", "config.json", "{\"auths\":{\"r.example\":{\"auth\":\"eDp5\"}}}", true},
		{"data", "a.json", "{\"type\": \"service_account\", \"name\": \"x\"}", false},
		{"a list", "a.json", "[{\"private_key\":\"x\",\"type\":\"service_account\"}]", false},
		{"cluster", "kubeconfig", "users:\n- name: a\n  user:\n    token: abc\n", true},
		{"cluster by program", "kubeconfig", "users:\n- name: a\n  user:\n    exec:\n      command: x\n", false},
	} {
		s := SecretOf(c.file, false)
		if s == nil || s.Holds == nil {
			t.Errorf("%s: %s is not judged by its contents", c.name, c.file)
		} else if got := s.Holds([]byte(c.text)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// FuzzContents: no contents make a judge fail, and what is a credential stays one when something harmless is put after
// it.
func FuzzContents(f *testing.F) {
	for _, s := range []string{pemKey, "_auth=x", "{\"auths\":{\"auth\":\"x\"}}", "password x", "token: x", "0\x82",
		"\"private_key\" : \"", "-----BEGIN "} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range Secrets() {
			if s.Holds == nil {
				continue
			}
			was := s.Holds(b)
			if !was || s.Pattern == "*.key" || s.Pattern == "*.json" {
				continue
			}
			if !s.Holds(append(append([]byte{}, b...), "\n# end\n"...)) {
				t.Fatalf("%s: no credential any more with a line after it: %q", s.Pattern, b)
			}
		}
	})
}

// FuzzSecretAt: letter case makes no difference, and what is below a directory of dependencies is free at every depth.
func FuzzSecretAt(f *testing.F) {
	f.Add("a/.env")
	f.Add("node_modules/x.pem")
	f.Add("//")
	f.Fuzz(func(t *testing.T, rel string) {
		plain, folded := SecretAt(rel, false), SecretAt(Fold(rel), false)
		if plain.Secret != nil && folded.Secret == nil && folded.In == "" {
			t.Fatalf("%q is hidden and %q is not", rel, Fold(rel))
		}
		if c := SecretAt("vendor/"+rel, false); c.Secret != nil {
			t.Fatalf("vendor/%q is hidden", rel)
		}
	})
}
