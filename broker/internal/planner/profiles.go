package planner

import (
	"path"
	"strings"
)

// Profile is a named set of grants, before the user's own are added. Paths may start with ~.
type Profile struct {
	Name    string
	Read    []string // shown read-only if they exist
	NoExec  []string // the same, without execution
	Project Mode     // what the project directory gets
	Caches  bool     // tool caches are usable
	Network bool
	Home    bool // permissive: everything that is not a secret
}

// system trees that every profile shows.
var systemTrees = [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// loaderFiles are what the loader, libc and TLS libraries read to start any program at all.
var loaderFiles = [...]string{"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/passwd", "/etc/group",
	"/etc/nsswitch.conf", "/etc/localtime", "/etc/timezone", "/etc/hosts", "/etc/host.conf", "/etc/services", "/etc/protocols", "/etc/locale.alias",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates.conf", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/mime.types", "/etc/terminfo", "/etc/inputrc"}

// stateTrees below /var that package managers and documentation tools read.
var stateTrees = [...]string{"/var/lib/dpkg", "/var/lib/apt", "/var/cache/apt", "/var/lib/rpm", "/var/lib/pacman", "/var/cache/fontconfig", "/var/cache/man", "/var/lib/ca-certificates", "/var/lib/sgml-base", "/var/lib/xml-core", "/var/cache/debconf/templates.dat"}

// toolTrees below the home directory are toolchains and the settings of tools that hold no secret.
var toolTrees = [...]string{"~/.cargo", "~/.rustup", "~/go", "~/sdk", "~/.local/bin", "~/.local/lib", "~/.local/pipx", "~/.local/share/pipx", "~/.local/share/uv", "~/.local/share/mise", "~/.local/share/fnm",
	"~/.local/share/virtualenvs", "~/.local/share/pnpm", "~/.nvm", "~/.volta", "~/.fnm", "~/.bun", "~/.deno", "~/.pyenv", "~/.rye", "~/.rbenv", "~/.goenv", "~/.nodenv", "~/.asdf", "~/.sdkman", "~/.jenv", "~/.ghcup", "~/.cabal", "~/.stack", "~/.opam", "~/.nimble",
	"~/.dotnet", "~/.nuget", "~/.gem", "~/.rustup", "~/.elan", "~/.juliaup", "~/.nix-profile", "~/miniconda3", "~/anaconda3", "~/.conda/envs", "~/.npm-global", "~/.yarn", "~/.foundry",
	"~/.gitconfig", "~/.config/git", "~/.gitignore", "~/.gitignore_global", "~/.inputrc", "~/.vimrc", "~/.vim", "~/.config/nvim", "~/.local/share/nvim", "~/.tmux.conf", "~/.config/tmux", "~/.editorconfig", "~/.terminfo", "~/.config/go"}

// Profiles returns the built-in profiles, strictest first.
func Profiles() []Profile {
	base := append([]string(nil), systemTrees[:]...)
	strict := append(append([]string(nil), base...), loaderFiles[:]...)
	moderate := append(append(append(append([]string(nil), base...), "/opt", "/etc"), stateTrees[:]...), toolTrees[:]...)
	return []Profile{
		{Name: "strict", Read: strict, Project: Read},
		{Name: "moderate", Read: moderate, Project: Write, Caches: true},
		{Name: "permissive", Read: []string{"/"}, Project: Write, Caches: true, Network: true, Home: true},
	}
}

// Secret is one entry of the built-in list, with the reason why it is on it.
type Secret struct{ Path, Why string }

// Secrets are hidden in every profile. ~ is the home directory; a star stands in the last component only.
func Secrets() []Secret {
	return []Secret{
		{"~/.ssh", "SSH keys and the hosts they open"}, {"~/.gnupg", "GnuPG private keys"}, {"~/.aws", "AWS credentials"},
		{"~/.config/gcloud", "Google Cloud credentials"}, {"~/.azure", "Azure credentials"}, {"~/.kube", "Kubernetes credentials"},
		{"~/.docker/config.json", "registry credentials"}, {"~/.netrc", "passwords of hosts"}, {"~/.git-credentials", "passwords of git hosts"}, {"~/.config/git/credentials", "passwords of git hosts"},
		{"~/.config/gh", "GitHub token"}, {"~/.config/glab-cli", "GitLab token"}, {"~/.config/hub", "GitHub token"},
		{"~/.npmrc", "npm token"}, {"~/.yarnrc.yml", "registry token"}, {"~/.pypirc", "PyPI token"}, {"~/.config/pip", "index passwords"}, {"~/.pip", "index passwords"},
		{"~/.cargo/credentials", "crates.io token"}, {"~/.cargo/credentials.toml", "crates.io token"}, {"~/.gem/credentials", "RubyGems token"}, {"~/.nuget/NuGet", "package source passwords"},
		{"~/.m2/settings.xml", "repository passwords"}, {"~/.m2/settings-security.xml", "master password"}, {"~/.gradle/gradle.properties", "repository passwords"}, {"~/.sbt/credentials", "repository passwords"},
		{"~/.password-store", "passwords"}, {"~/.local/share/keyrings", "the desktop's keyring"}, {"~/.local/share/kwalletd", "the desktop's wallet"}, {"~/.config/op", "1Password sessions"}, {"~/.config/Bitwarden", "passwords"}, {"~/.config/keepassxc", "passwords"},
		{"~/.mozilla", "browser profile"}, {"~/.thunderbird", "mail and its passwords"}, {"~/.config/google-chrome", "browser profile"}, {"~/.config/chromium", "browser profile"}, {"~/.config/BraveSoftware", "browser profile"}, {"~/.config/microsoft-edge", "browser profile"}, {"~/.config/vivaldi", "browser profile"}, {"~/.config/opera", "browser profile"},
		{"~/.cache/mozilla", "browser cache"}, {"~/.cache/google-chrome", "browser cache"}, {"~/.cache/chromium", "browser cache"}, {"~/snap/firefox", "browser profile"}, {"~/.var/app", "profiles of desktop programs"},
		{"~/.bash_history", "typed commands"}, {"~/.zsh_history", "typed commands"}, {"~/.local/share/fish/fish_history", "typed commands"}, {"~/.python_history", "typed commands"}, {"~/.node_repl_history", "typed commands"}, {"~/.psql_history", "typed queries"}, {"~/.mysql_history", "typed queries"}, {"~/.sqlite_history", "typed queries"}, {"~/.lesshst", "typed searches"}, {"~/.viminfo", "registers and file names"}, {"~/.histfile", "typed commands"}, {"~/.history", "typed commands"}, {"~/.local/state/bash/history", "typed commands"},
		{"~/.pgpass", "database passwords"}, {"~/.my.cnf", "database passwords"}, {"~/.pg_service.conf", "database passwords"}, {"~/.vault-token", "Vault token"}, {"~/.terraform.d", "Terraform tokens"}, {"~/.terraformrc", "Terraform tokens"}, {"~/.boto", "cloud credentials"}, {"~/.s3cfg", "cloud credentials"}, {"~/.config/rclone", "cloud credentials"}, {"~/.config/doctl", "cloud token"}, {"~/.config/hcloud", "cloud token"}, {"~/.fly", "cloud token"}, {"~/.oci", "cloud credentials"}, {"~/.config/heroku", "cloud token"}, {"~/.config/containers/auth.json", "registry credentials"},
		{"~/.claude.json", "agent session"}, {"~/.claude/.credentials.json", "agent token"}, {"~/.codex/auth.json", "agent token"}, {"~/.gemini/oauth_creds.json", "agent token"}, {"~/.config/anthropic", "API key"}, {"~/.config/openai", "API key"}, {"~/.config/github-copilot", "agent token"},
		{"~/.config/sbx", "sbx's own policy"}, {"~/.local/state/sbx", "sbx's own records"}, {"~/.Xauthority", "X11 session"}, {"~/.ICEauthority", "desktop session"}, {"~/.config/pulse/cookie", "sound server"},
		{"~/.electrum", "wallet"}, {"~/.bitcoin", "wallet"}, {"~/.ethereum", "wallet"}, {"~/.config/solana", "wallet"}, {"~/.age", "age keys"}, {"~/.config/age", "age keys"}, {"~/.config/sops", "age keys"},
		{"/etc/shadow", "password hashes"}, {"/etc/shadow-", "password hashes"}, {"/etc/gshadow", "password hashes"}, {"/etc/gshadow-", "password hashes"}, {"/etc/ssh/*_key", "the host's SSH keys"}, {"/etc/sudoers", "who may become root"}, {"/etc/sudoers.d", "who may become root"},
		{"/etc/ssl/private", "the host's TLS keys"}, {"/etc/krb5.keytab", "the host's Kerberos key"}, {"/etc/wireguard", "VPN keys"}, {"/etc/openvpn", "VPN keys"}, {"/etc/NetworkManager/system-connections", "Wi-Fi passwords"}, {"/etc/sbx", "sbx's own policy"},
	}
}

// ExpandSecrets resolves the list for one home directory; a star is matched against what is there.
func ExpandSecrets(fs FS, home string, list []Secret) []Hide {
	var out []Hide
	for _, s := range list {
		p := s.Path
		if strings.HasPrefix(p, "~/") {
			if home == "" {
				continue
			}
			p = home + p[1:]
		}
		if !strings.Contains(p, "*") {
			out = append(out, Hide{Path: p, Secret: true, Why: s.Why})
			continue
		}
		entries, _ := fs.ReadDir(path.Dir(p))
		for _, e := range entries {
			if ok, _ := path.Match(path.Base(p), e.Name); ok {
				out = append(out, Hide{Path: path.Join(path.Dir(p), e.Name), Secret: true, Why: s.Why})
			}
		}
	}
	return out
}

// Cache is a place where tools keep what they can fetch or build again.
type Cache struct{ Var, Path string }

// Caches are found by the variable if it is set, else at the conventional path.
func Caches() []Cache {
	return []Cache{
		{"XDG_CACHE_HOME", "~/.cache"}, {"GOCACHE", ""}, {"GOMODCACHE", "~/go/pkg"}, {"CARGO_HOME", "~/.cargo/registry"}, {"", "~/.cargo/git"},
		{"PIP_CACHE_DIR", ""}, {"npm_config_cache", "~/.npm"}, {"YARN_CACHE_FOLDER", "~/.yarn/cache"}, {"", "~/.local/share/pnpm/store"}, {"", "~/.m2/repository"},
		{"GRADLE_USER_HOME", "~/.gradle/caches"}, {"", "~/.gradle/wrapper"}, {"CCACHE_DIR", "~/.ccache"}, {"SCCACHE_DIR", ""}, {"UV_CACHE_DIR", ""}, {"", "~/.nuget/packages"}, {"", "~/.ivy2/cache"}, {"", "~/.bun/install/cache"}, {"", "~/.cabal/packages"},
	}
}
