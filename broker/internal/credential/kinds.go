package credential

// kind is what sbx knows of a service: where its credential goes, and where tools look for it.
type kind struct {
	name   string
	at     []at
	env    []string // variables that hold the credential
	prefix string   // what tools expect it to begin with
	base   []base   // variables that name another address of the service
	// paths whose version some tools take for the end of that address, and others put behind it
	versioned []string
	files     []file
	fixed     [][2]string // variables that are the same in every session
}

// file is one of a tool's that holds the credential, below /run/sbx, and the variable by which the tool finds it.
type file struct {
	name, variable string
	text           func(credential, host string) string
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
	query          string
}

// base is a variable that holds the address of the first host, with what tools expect behind it.
type base struct{ variable, path string }

func header(name, format string) place { return place{header: name, format: format} }

// anyHost stands for a server that each person names: a registry.
const anyHost = ""

func kinds() []kind {
	bearer := header("Authorization", "Bearer {}")
	return []kind{
		{name: "github", env: []string{"GITHUB_TOKEN", "GH_TOKEN"}, at: []at{
			{"api.github.com", bearer}, {"uploads.github.com", bearer},
			{"github.com", place{basic: true, user: "x-access-token"}}}},
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
			{"gitlab.com", place{basic: true, user: "oauth2"}}}},
		{name: "npm", env: []string{"NPM_TOKEN", "NODE_AUTH_TOKEN"}, prefix: "npm_", at: []at{
			{anyHost, bearer}}, files: []file{{name: "npmrc", variable: "NPM_CONFIG_USERCONFIG",
			text: func(c, host string) string { return "//" + host + "/:_authToken=" + c + "\n" }}}},
		{name: "pypi", env: []string{"TWINE_PASSWORD", "UV_PUBLISH_TOKEN"}, prefix: "pypi-",
			fixed: [][2]string{{"TWINE_USERNAME", "__token__"}},
			at:    []at{{anyHost, place{basic: true, user: "__token__"}}}},
		{name: "cargo", env: []string{"CARGO_REGISTRY_TOKEN"}, at: []at{
			{anyHost, header("Authorization", "{}")}}},
		{name: "huggingface", env: []string{"HF_TOKEN"}, prefix: "hf_", at: []at{{"huggingface.co", bearer}}},
	}
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
