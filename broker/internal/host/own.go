package host

import (
	"slices"
	"strings"
)

// Kept says whether a variable is obeyed and stays the same from one terminal to the next.
func Kept(name string) bool {
	return slices.Contains([]string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		"XDG_RUNTIME_DIR", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS", "XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE",
		"SSH_AUTH_SOCK", "GNUPGHOME", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS",
		"STORAGE_DRIVER", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy",
		"https_proxy", "ftp_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "GOPATH",
		"GOBIN", "GOCACHE", "GOMODCACHE", "CARGO_HOME", "npm_config_cache", "NVM_DIR", "VOLTA_HOME", "PNPM_HOME",
		"YARN_CACHE_FOLDER", "PIP_CACHE_DIR", "UV_CACHE_DIR", "GRADLE_USER_HOME", "CCACHE_DIR", "SCCACHE_DIR"}, name)
}

// obeyed says whether a variable tells sbx where something is, and so decides what it grants: settings, records,
// sockets, caches that are shown, a proxy that may be reached, the screen on which a question is answered. It may also
// tell that to a program that sbx starts outside, such as one that shows questions (package program).
func obeyed(name string) bool {
	return Kept(name) || strings.HasPrefix(name, "SBX_") || strings.HasPrefix(name, "XDG_") ||
		strings.HasPrefix(name, "GIT_CONFIG_") ||
		slices.Contains([]string{"GODEBUG", "TMPDIR", "TMUX", "TMUX_PANE", "STY"}, name)
}

// OverrideEnv is env with those variables alone that sbx obeys and own has.
func OverrideEnv(env, own []string) []string {
	return append(slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return obeyed(name)
	}), own...)
}
