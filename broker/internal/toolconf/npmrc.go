package toolconf

import "strings"

// npmKeys are the keys of npm's and pnpm's configuration that are shown.
func npmKeys() map[string]kind {
	keys := map[string]kind{"registry": link, "proxy": link, "https-proxy": link, "http-proxy": link, "noproxy": names,
		"no-proxy": names, "cafile": file, "cache": file, "prefix": file, "store-dir": file,
		"global-dir": file, "global-bin-dir": file, "virtual-store-dir": file, "tmp": file, "userconfig": file}
	for _, k := range strings.Fields(`always-auth audit audit-level auto-install-peers before bin-links color
		dedupe-peer-dependents engine-strict fetch-retries fetch-retry-factor fetch-retry-maxtimeout fetch-retry-mintimeout
		fetch-timeout foreground-scripts fund hoist ignore-scripts include-workspace-root install-links install-strategy
		legacy-bundling legacy-peer-deps link-workspace-packages lockfile-version loglevel maxsockets min-release-age
		network-concurrency node-linker node-version offline omit optional package-import-method package-lock
		prefer-dedupe prefer-frozen-lockfile prefer-offline prefer-online prefer-workspace-packages production progress
		resolution-mode save save-exact save-prefix save-workspace-protocol shamefully-hoist shared-workspace-lockfile
		side-effects-cache strict-peer-dependencies strict-ssl tag tag-version-prefix unicode update-notifier
		use-node-version verify-store-integrity workspaces`) {
		keys[k] = word
	}
	return keys
}

// Npmrc is a .npmrc, npm's own or pnpm's, without what may hold a credential. It fails where the file is not what npm
// reads as a list of settings, and where nothing would be left.
func Npmrc(text []byte) (string, bool) {
	list, ok := lines(text)
	if !ok {
		return "", false
	}
	var out strings.Builder
	out.WriteString(header)
	keys := npmKeys()
	for _, line := range list {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, assigned := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); key == "" || strings.ContainsAny(key, "[]\"'\\ \t") && !plainList(key) {
			return "", false // a section, or what is quoted
		}
		k, known := keys[strings.TrimSuffix(key, "[]")]
		if scope, name, _ := strings.Cut(key, ":"); name == "registry" && len(scope) > 1 && scope[0] == '@' &&
			plainName(scope[1:]) {
			k, known = link, true
		}
		if !known {
			continue
		}
		if !assigned {
			value = "true"
		}
		if value, ok = iniValue(value); !ok {
			continue
		}
		if shown, ok := k.shown(value); ok {
			out.WriteString(key + "=" + shown + "\n")
		}
	}
	if out.Len() == len(header) {
		return "", false
	}
	return out.String(), true
}

// plainList says whether a key is that of a list: KEY[].
func plainList(key string) bool {
	return !strings.ContainsAny(strings.TrimSuffix(key, "[]"), "[]\"'\\ \t")
}

// iniValue is a value as npm reads it: without a comment behind it, and without quotes around it. One that has anything
// to be unescaped is not read.
func iniValue(v string) (string, bool) {
	v = strings.TrimSpace(v)
	if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') {
		inner := v[1 : n-1]
		return inner, v[n-1] == v[0] && !strings.ContainsAny(inner, "\"'\\")
	}
	if i := strings.IndexAny(v, ";#"); i >= 0 {
		v = strings.TrimSpace(v[:i])
	}
	return v, !strings.ContainsAny(v, "\"'\\")
}
