package host

import (
	"slices"
	"strings"
)

// Obeyed says whether a variable tells sbx where something is, and so decides what it grants: settings, records,
// sockets, caches that are shown, a proxy that may be reached, the screen on which a question is answered.
func Obeyed(name string) bool {
	return slices.Contains([]string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		"XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "GNUPGHOME", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY",
		"DBUS_SESSION_BUS_ADDRESS", "STORAGE_DRIVER", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "SSL_CERT_FILE",
		"SSL_CERT_DIR", "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY",
		"ALL_PROXY", "GOPATH", "GOBIN", "GOCACHE", "GOMODCACHE", "CARGO_HOME", "npm_config_cache", "NVM_DIR", "VOLTA_HOME",
		"PNPM_HOME", "YARN_CACHE_FOLDER", "PIP_CACHE_DIR", "UV_CACHE_DIR", "GRADLE_USER_HOME", "CCACHE_DIR",
		"SCCACHE_DIR"}, name) || passing(name)
}

// passing says so of what is another in every terminal, or for one test: nobody keeps it.
func passing(name string) bool {
	return strings.HasPrefix(name, "SBX_") || strings.HasPrefix(name, "GIT_CONFIG_") && name != "GIT_CONFIG_GLOBAL" &&
		name != "GIT_CONFIG_SYSTEM" || slices.Contains([]string{"GODEBUG", "TMPDIR", "TMUX", "TMUX_PANE", "STY"}, name)
}

// Kept says whether a variable is obeyed and stays the same from one terminal to the next.
func Kept(name string) bool { return Obeyed(name) && !passing(name) }

// Settle is env with those variables alone that sbx obeys and own has.
func Settle(env, own []string) []string {
	return append(slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return Obeyed(name)
	}), own...)
}
