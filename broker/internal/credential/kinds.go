//go:build linux

package credential

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// kind is what sbx knows of a service: where its credential goes, and where tools look for it.
type kind struct {
	name   string
	at     []at
	env    []string // variables that hold the credential
	prefix string   // what tools expect it to begin with
	base   []base   // variables that name another address of the service
	// paths whose version some tools take for the end of that address, and others put behind it
	versioned []string
	file      *file
	fixed     [][2]string // variables that are the same in every session
	login     bool        // it is issued to a program that signs in; package policy knows where
	folder    string      // of such a program: the variable that names the folder in which it keeps what it has
	helper    string      // of such a program: what git asks for a password
}

// file is one of a tool's that holds credentials, below /run/sbx, and the variables by which tools find it: each with
// what of the file's name it holds. text has all credentials of a run that the file is for.
type file struct {
	name      string
	variables [][2]string
	text      func([]entry) string
}

// entry is a credential in a file.
type entry struct {
	at
	granted
}

// at is a host, and the place in requests to it.
type at struct {
	host string
	place
}

// place is where the credential stands in a request.
type place struct {
	header, format string
	basic          bool
	user           string
	anyUser        bool // the service looks at the password alone, or takes it as the user
	query          string
	aws            bool // it signs the request
}

// base is a variable that holds the address of the first host, with what tools expect behind it.
type base struct{ variable, path string }

func header(name, format string) place { return place{header: name, format: format} }

// anyHost stands for a server that each person names: a registry.
const anyHost = ""

func kinds() []kind {
	bearer := header("Authorization", "Bearer {}")
	github := []at{{"api.github.com", bearer}, {"uploads.github.com", bearer},
		{"github.com", place{basic: true, user: "x-access-token", anyUser: true}}}
	return []kind{
		{name: "github", env: []string{"GITHUB_TOKEN", "GH_TOKEN"}, at: github},
		{name: "github-login", login: true, at: github, folder: "GH_CONFIG_DIR", helper: "!gh auth git-credential"},
		{name: "claude-login", login: true, at: []at{{"api.anthropic.com", bearer}}},
		{name: "codex-login", login: true, at: []at{{"chatgpt.com", bearer}, {"api.openai.com", bearer}}},
		{name: "anthropic", env: []string{"ANTHROPIC_API_KEY"}, prefix: "sk-ant-api03-",
			base: []base{{"ANTHROPIC_BASE_URL", ""}}, versioned: []string{"/v1/messages", "/v1/models"},
			at: []at{{"api.anthropic.com", header("X-Api-Key", "{}")}}},
		{name: "openai", env: []string{"OPENAI_API_KEY", "CODEX_API_KEY"}, prefix: "sk-",
			base: []base{{"OPENAI_BASE_URL", "/v1"}}, at: []at{{"api.openai.com", bearer}}},
		{name: "gemini", env: []string{"GEMINI_API_KEY"}, prefix: "AIza", base: []base{{"GOOGLE_GEMINI_BASE_URL", ""}},
			at: []at{{"generativelanguage.googleapis.com", header("X-Goog-Api-Key", "{}")},
				{"generativelanguage.googleapis.com", place{query: "key"}}}},
		{name: "gitlab", env: []string{"GITLAB_TOKEN"}, prefix: "glpat-", at: []at{
			{"gitlab.com", header("Private-Token", "{}")}, {"gitlab.com", bearer},
			{"gitlab.com", place{basic: true, user: "oauth2", anyUser: true}}}},
		{name: "npm", env: []string{"NPM_TOKEN", "NODE_AUTH_TOKEN"}, prefix: "npm_", at: []at{
			{anyHost, bearer}}, file: &file{"npmrc", [][2]string{{"NPM_CONFIG_USERCONFIG", "npmrc"}}, npmrc}},
		{name: "docker", at: []at{{anyHost, place{basic: true}}}, file: &file{"docker/config.json",
			[][2]string{{"DOCKER_CONFIG", "docker"}, {"REGISTRY_AUTH_FILE", "docker/config.json"}}, dockerConfig}},
		{name: "pypi", env: []string{"TWINE_PASSWORD", "UV_PUBLISH_TOKEN"}, prefix: "pypi-",
			fixed: [][2]string{{"TWINE_USERNAME", "__token__"}},
			at:    []at{{anyHost, place{basic: true, user: "__token__"}}}},
		{name: "cargo", env: []string{"CARGO_REGISTRY_TOKEN"}, at: []at{
			{anyHost, header("Authorization", "{}")}}},
		{name: "huggingface", env: []string{"HF_TOKEN"}, prefix: "hf_", at: []at{{"huggingface.co", bearer}}},
	}
}

// netrc has every password, for Go and Python.
func netrc() *file {
	return &file{"netrc", [][2]string{{"NETRC", "netrc"}}, func(list []entry) (text string) {
		for _, e := range list {
			text += "machine " + e.host + " login " + e.user + " password " + e.placeholder + "\n"
		}
		return text
	}}
}

func npmrc(list []entry) (text string) {
	for _, e := range list {
		text += "//" + e.host + "/:_authToken=" + e.placeholder + "\n"
	}
	return text
}

// dockerConfig is what docker, podman, skopeo and others read: each registry with the base64 of its user and password.
// auth.NAME gives out tokens for NAME, which tools also know by docker's first form of an address.
func dockerConfig(list []entry) string {
	auths := map[string]map[string]string{}
	for _, e := range list {
		auth := map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(e.user + ":" + e.placeholder))}
		auths[e.host] = auth
		if name, ok := strings.CutPrefix(e.host, "auth."); ok {
			auths[name], auths["https://index."+name+"/v1/"] = auth, auth
		}
	}
	text, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		panic(err) // strings alone
	}
	return string(text) + "\n"
}

// kindOf finds one by its name; another name is a kind that sbx knows nothing of.
func kindOf(name string) kind {
	for _, k := range kinds() {
		if k.name == name {
			return k
		}
	}
	return kind{name: name}
}

// caVariables name the list of certificates that tools trust.
func caVariables() []string {
	return []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
		"PIP_CERT", "npm_config_cafile", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE", "CODEX_CA_CERTIFICATE"}
}

// bundles are where systems keep the list of certificates that they trust, as crypto/x509 looks for it.
func bundles() []string {
	return []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"}
}
