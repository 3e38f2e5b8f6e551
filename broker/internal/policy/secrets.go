package policy

import (
	"maps"
	"slices"

	"sbx.example/sbx/broker/internal/policy/pathname"
)

// Secret is a path that is hidden whatever is readable around it.
type Secret struct {
	Kind    Kind // KindSocket, or empty for a path
	Pattern string
	Reason  string
	// OrgOnly marks the control sockets of the host: whoever can talk to one owns the machine or the session, so
	// only the org's policy can open them.
	OrgOnly bool
}

// Secrets is the built-in list, in the syntax of Pattern; every entry covers all that lies below it. Names under which
// people keep credentials wherever they work are package guard's.
func Secrets() []Secret {
	return append([]Secret{
		{Pattern: "~/.ssh", Reason: "private keys, and authorized_keys lets others in"},
		{Pattern: "~/.gnupg", Reason: "private keys"},
		{Pattern: "~/.aws", Reason: "cloud credentials"},
		{Pattern: "~/.config/gcloud", Reason: "cloud credentials"},
		{Pattern: "~/.azure", Reason: "cloud credentials"},
		{Pattern: "~/.kube", Reason: "cluster credentials"},
		{Pattern: "~/.docker/config.json", Reason: "registry passwords"},
		{Pattern: "~/.config/containers/auth.json", Reason: "registry passwords"},
		{Pattern: "~/.netrc", Reason: "passwords in clear text"},
		{Pattern: "~/.git-credentials", Reason: "passwords in clear text"},
		{Pattern: "~/.config/git/credentials", Reason: "passwords in clear text"},
		{Pattern: "~/.config/gh", Reason: "GitHub token"},
		{Pattern: "~/.config/glab-cli", Reason: "GitLab token"},
		{Pattern: "~/.config/hub", Reason: "GitHub token"},
		{Pattern: "~/.npmrc", Reason: "publish token"},
		{Pattern: "~/.yarnrc.yml", Reason: "publish token"},
		{Pattern: "~/.pypirc", Reason: "publish token"},
		{Pattern: "~/.cargo/credentials*", Reason: "publish token"},
		{Pattern: "~/.gem/credentials", Reason: "publish token"},
		{Pattern: "~/.m2/settings*.xml", Reason: "repository passwords"},
		{Pattern: "~/.gradle/gradle.properties", Reason: "often holds repository passwords"},
		{Pattern: "~/.terraform.d", Reason: "cloud token"},
		{Pattern: "~/.vault-token", Reason: "token"},
		{Pattern: "~/.config/op", Reason: "password manager session"},
		{Pattern: "~/.password-store", Reason: "password manager"},
		{Pattern: "~/.local/share/keyrings", Reason: "keyring"},
		{Pattern: "~/.local/share/kwalletd", Reason: "keyring"},
		{Pattern: "~/.pgpass", Reason: "database passwords"},
		{Pattern: "~/.my.cnf", Reason: "database passwords"},
		{Pattern: "~/.mozilla", Reason: "browser profile: cookies and passwords"},
		{Pattern: "~/.thunderbird", Reason: "mail profile: mail and passwords"},
		{Pattern: "~/.config/google-chrome*", Reason: "browser profile: cookies and passwords"},
		{Pattern: "~/.config/chromium", Reason: "browser profile: cookies and passwords"},
		{Pattern: "~/.config/BraveSoftware", Reason: "browser profile: cookies and passwords"},
		{Pattern: "~/.config/microsoft-edge*", Reason: "browser profile: cookies and passwords"},
		{Pattern: "~/.*_history", Reason: "shell and tool histories contain passwords typed by mistake"},
		{Pattern: "~/.local/share/fish/fish_history", Reason: "shell history"},
		{Pattern: "~/.zsh_sessions", Reason: "shell histories"},
		{Pattern: "~/.python_history*", Reason: "interpreter history"},
		{Pattern: "~/.config/sbx", Reason: "sbx's own rules: whoever writes them decides"},
		{Pattern: "~/.local/state/sbx", Reason: "sbx's own state: audit log, trust, sessions"},
		{Pattern: "~/.config/pip", Reason: "index passwords"},
		{Pattern: "~/.pip", Reason: "index passwords"},
		{Pattern: "~/.nuget/NuGet", Reason: "package source passwords"},
		{Pattern: "~/.sbt/credentials", Reason: "repository passwords"},
		{Pattern: "~/.config/Bitwarden", Reason: "passwords"},
		{Pattern: "~/.config/keepassxc", Reason: "passwords"},
		{Pattern: "~/.config/vivaldi", Reason: "browser profile"},
		{Pattern: "~/.config/opera", Reason: "browser profile"},
		{Pattern: "~/.cache/mozilla", Reason: "browser cache"},
		{Pattern: "~/.cache/google-chrome", Reason: "browser cache"},
		{Pattern: "~/.cache/chromium", Reason: "browser cache"},
		{Pattern: "~/snap/firefox", Reason: "browser profile"},
		{Pattern: "~/.var/app", Reason: "profiles of desktop programs"},
		{Pattern: "~/.lesshst", Reason: "typed searches"},
		{Pattern: "~/.viminfo", Reason: "registers and file names"},
		{Pattern: "~/.histfile", Reason: "typed commands"},
		{Pattern: "~/.history", Reason: "typed commands"},
		{Pattern: "~/.local/state/bash/history", Reason: "typed commands"},
		{Pattern: "~/.pg_service.conf", Reason: "database passwords"},
		{Pattern: "~/.terraformrc", Reason: "Terraform tokens"},
		{Pattern: "~/.boto", Reason: "cloud credentials"},
		{Pattern: "~/.s3cfg", Reason: "cloud credentials"},
		{Pattern: "~/.config/rclone", Reason: "cloud credentials"},
		{Pattern: "~/.config/doctl", Reason: "cloud token"},
		{Pattern: "~/.config/hcloud", Reason: "cloud token"},
		{Pattern: "~/.fly", Reason: "cloud token"},
		{Pattern: "~/.oci", Reason: "cloud credentials"},
		{Pattern: "~/.config/heroku", Reason: "cloud token"},
		{Pattern: "~/.claude.json", Reason: "agent session"},
		{Pattern: "~/.claude/.credentials.json", Reason: "agent token"},
		{Pattern: "~/.codex/auth.json", Reason: "agent token"},
		{Pattern: "~/.gemini/oauth_creds.json", Reason: "agent token"},
		{Pattern: "~/.local/share/opencode/auth.json", Reason: "agent token"},
		{Pattern: "~/.local/share/opencode/mcp-auth.json", Reason: "agent token"},
		{Pattern: "~/.config/goose/secrets.yaml", Reason: "API keys"},
		{Pattern: "~/.config/cursor/auth.json", Reason: "agent token"},
		{Pattern: "~/.config/anthropic", Reason: "API key"},
		{Pattern: "~/.config/openai", Reason: "API key"},
		{Pattern: "~/.config/github-copilot", Reason: "agent token"},
		{Pattern: "~/.Xauthority", Reason: "X11 session"},
		{Pattern: "~/.ICEauthority", Reason: "desktop session"},
		{Pattern: "~/.config/pulse/cookie", Reason: "sound server"},
		{Pattern: "~/.electrum", Reason: "wallet"},
		{Pattern: "~/.bitcoin", Reason: "wallet"},
		{Pattern: "~/.ethereum", Reason: "wallet"},
		{Pattern: "~/.config/solana", Reason: "wallet"},
		{Pattern: "~/.age", Reason: "age keys"},
		{Pattern: "~/.config/age", Reason: "age keys"},
		{Pattern: "~/.config/sops", Reason: "age keys"},
		{Pattern: "/etc/krb5.keytab", Reason: "the host's Kerberos key"},
		{Pattern: "/etc/openvpn", Reason: "VPN keys"},
		{Pattern: "/etc/sbx", Reason: "sbx's own policy"},
		{Pattern: "/etc/shadow*", Reason: "password hashes"},
		{Pattern: "/etc/gshadow*", Reason: "password hashes"},
		{Pattern: "/etc/ssh/*_key", Reason: "host keys"},
		{Pattern: "/etc/sudoers*", Reason: "who may become root"},
		{Pattern: "/etc/ssl/private", Reason: "server keys"},
		{Pattern: "/etc/NetworkManager/system-connections", Reason: "network passwords"},
		{Pattern: "/etc/wireguard", Reason: "tunnel keys"},

		{KindSocket, "/run/docker.sock", "control of docker is root on the host", true},
		{KindSocket, "/var/run/docker.sock", "control of docker is root on the host", true},
		{KindSocket, "/run/podman/**", "control of podman is root on the host", true},
		{KindSocket, "/run/user/*/podman/**", "control of podman leads out of the sandbox", true},
		{KindSocket, "/run/user/*/docker.sock", "control of docker leads out of the sandbox", true},
		{KindSocket, "/run/containerd/**", "control of containerd is root on the host", true},
		{KindSocket, "/run/crio/**", "control of cri-o is root on the host", true},
		{KindSocket, "/run/systemd/**", "systemd starts programs outside the sandbox", true},
		{KindSocket, "/run/user/*/systemd/**", "systemd starts programs outside the sandbox", true},
		{KindSocket, "/run/libvirt/**", "libvirt starts machines outside the sandbox", true},
		{KindSocket, "/run/snapd*.socket", "snapd installs software as root", true},
		{KindSocket, "/nix/var/nix/daemon-socket/**",
			"the Nix daemon builds and fetches outside of the sandbox; --nix grants it through a filter", true},
		{KindSocket, "/run/sbx/**", "sbx's own control sockets: whoever talks to them decides", true},
		{KindSocket, "/run/user/*/sbx/**", "sbx's own control sockets: whoever talks to them decides", true},
		{KindSocket, "/run/dbus/**", "the system bus reaches privileged services", false},
		{KindSocket, "/run/user/*/bus", "the session bus starts programs outside the sandbox", false},
		{KindSocket, "/run/user/*/wayland-*", "the display: screen contents, clipboard, typed keys", false},
		{KindSocket, "/run/user/*/pipewire-*", "microphone, camera and screen", false},
		{KindSocket, "/run/user/*/keyring/**", "keyring and ssh keys", false},
		{KindSocket, "/run/user/*/gnupg/**", "signs and decrypts with the user's keys", false},
		{KindSocket, "/run/user/*/gcr/**", "signs with the user's keys", false},
		{KindSocket, "/tmp/ssh-*/**", "signs with the user's keys", false},
		{KindSocket, "/tmp/.X11-unix/**", "the display: screen contents, clipboard, typed keys", false},
		{KindSocket, "@/tmp/.X11-unix/*", "the display: screen contents, clipboard, typed keys", false},
		{KindSocket, "@/tmp/dbus-*", "the session bus starts programs outside the sandbox", false},
	}, systemSecrets()...)
}

// wsl is where Windows shows a Linux that it runs programs and drivers of its own.
const wsl = "/usr/lib/wsl"

// Places are no secrets and hidden like fs.hidden, where they exist.
func Places() []Secret {
	return []Secret{
		{Pattern: wsl, Reason: "programs and drivers of Windows, which runs this Linux (WSL)"},
	}
}

// Hiding is one compiled pattern of what is hidden, with why and from where.
type Hiding struct {
	Secret
	Rule   pathname.Pattern
	Origin Origin
}

// Sources are the credentials whose value is in a file, by name.
func (e Effective) Sources() (list []Credential) {
	for _, name := range slices.Sorted(maps.Keys(e.Credentials)) {
		if c := e.Credentials[name]; c.FromFile != "" {
			list = append(list, c)
		}
	}
	return list
}

// SourceReason is why a file of Sources is hidden.
func (c *Credential) SourceReason() string { return "the value of credential " + c.Name }

// Concealed is the complete list of what is hidden: built-in secrets, fs.secrets, fs.hidden, the profile's lists, and
// the files that have values of credentials. A built-in entry whose variable has no value here cannot exist here and is
// left out.
func (e Effective) Concealed() []Hiding {
	var out []Hiding
	vars := e.Vars
	vars.Narrow = false
	for _, s := range append(Secrets(), Places()...) {
		if s.Kind == "" {
			s.Kind = KindPath
		}
		if p, err := pathname.ParsePattern(s.Pattern, vars); err == nil {
			out = append(out, Hiding{s, p, Origin{}})
		}
	}
	add := func(list []string, reason, key string) {
		for i, text := range list {
			p, err := pathname.ParsePattern(text, vars)
			if err != nil {
				continue
			}
			var o Origin
			if from := e.Origins[key]; i < len(from) {
				o = from[i]
			}
			out = append(out, Hiding{Secret{KindPath, text, reason, false}, p, o})
		}
	}
	add(e.FS.Secrets, "fs.secrets", "fs.secrets")
	add(e.FS.Hidden, "fs.hidden", "fs.hidden")
	add(e.Profile.Secrets, "secret of profile "+e.Profile.Name, "")
	add(e.Profile.Hidden, "hidden by profile "+e.Profile.Name, "")
	for _, c := range e.Sources() {
		if p, err := pathname.ParsePattern(c.FromFile, vars); err == nil {
			out = append(out, Hiding{Secret{KindPath, c.FromFile, c.SourceReason(), false}, p, c.Origin})
		}
	}
	return out
}

// HiddenBy finds the first entry that hides path from an access of this kind. Entries for sockets are about
// connecting to them, not about reading the directory they are in.
func HiddenBy(list []Hiding, kind Kind, path string) *Hiding {
	s := pathname.Split(path)
	for i := range list {
		h := &list[i]
		if (h.Kind != KindSocket || kind == KindSocket) && h.Rule.MatchSplit(s, true) {
			return h
		}
	}
	return nil
}

// Reveals are the secret files, by path, of which somebody has said that they may be shown.
type Reveals struct {
	Rules map[string]bool // by a rule; a project's own never says so
	Asks  map[string]bool // after a question, where one can be asked
	Final Origin          // the organisation's word that nothing but Asks is ever shown; zero where it has none
}

// Reveals collects fs.reveal and the rules of a store.
func (e Effective) Reveals(s Store) Reveals {
	r := Reveals{Rules: map[string]bool{}, Asks: map[string]bool{}, Final: e.Locked["fs.reveal"]}
	for _, text := range e.FS.Reveal {
		name, _ := pathname.SplitOptional(text)
		r.Asks[name] = true
	}
	for _, x := range s.InForce() {
		if p, ok := x.path.Literal(); ok && x.Decision == Reveal {
			r.Rules[p] = true
		}
	}
	return r
}

// Concerns says whether somebody has spoken of a secret file.
func (r Reveals) Concerns(p string) bool { return r.Rules[p] || r.Asks[p] }

// May says whether the organisation lets a secret file be shown.
func (r Reveals) May(p string) bool { return r.Final == (Origin{}) || r.Asks[p] }

// Asks is what is asked about although something around it may be readable: fs.ask and the profile's list.
func (e Effective) Asks() []pathname.Pattern {
	var out []pathname.Pattern
	for _, text := range append(append([]string{}, e.FS.Ask...), e.Profile.Ask...) {
		if p, err := pathname.ParsePattern(text, Vars{}); err == nil {
			out = append(out, p)
		}
	}
	return out
}
