package toolconf

import (
	"slices"
	"strings"
)

// pipKeys are the options of pip that are shown.
func pipKeys() map[string]kind {
	keys := map[string]kind{"index-url": link, "extra-index-url": link, "index": link, "find-links": link,
		"trusted-host": names, "no-binary": names, "only-binary": names, "format": names,
		"cert": file, "proxy": link, "cache-dir": file, "constraint": file, "requirement": file,
		"target": file, "prefix": file, "src": file, "log": file}
	for _, k := range strings.Fields(`break-system-packages default-timeout disable-pip-version-check
		ignore-installed ignore-requires-python isolated no-build-isolation no-cache-dir no-color no-compile
		no-deps no-index no-input no-warn-script-location pre prefer-binary progress-bar quiet
		require-hashes require-virtualenv retries root-user-action timeout upgrade upgrade-strategy use-pep517
		use-feature user verbose`) {
		keys[k] = word
	}
	return keys
}

// Pip is a pip.conf without what may hold a credential. It fails where the file is not what Python's
// configparser reads, and where nothing would be left.
func Pip(text []byte) (string, bool) {
	list, ok := lines(text)
	if !ok {
		return "", false
	}
	var out strings.Builder
	out.WriteString(header)
	var option string
	var values []string
	keys, section, some := pipKeys(), false, false
	end := func() {
		if values = pipValues(keys, option, values); len(values) > 0 {
			some = true
			out.WriteString(option + " = " + strings.Join(values, "\n    ") + "\n")
		}
		option, values = "", nil
	}
	for _, line := range list {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case line[0] == ' ' || line[0] == '\t':
			if option == "" {
				return "", false
			}
			values = append(values, trimmed)
		case line[0] == '[':
			end()
			name := strings.TrimSuffix(trimmed[1:], "]")
			if len(name) != len(trimmed)-2 || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" {
				return "", false
			}
			section = true
			out.WriteString("[" + name + "]\n")
		default:
			end()
			i := strings.IndexAny(trimmed, "=:")
			if i <= 0 || !section {
				return "", false
			}
			option = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(trimmed[:i])), "_", "-")
			if v := strings.TrimSpace(trimmed[i+1:]); v != "" {
				values = append(values, v)
			}
		}
	}
	end()
	if !some {
		return "", false
	}
	return out.String(), true
}

// pipValues are what may be seen of an option's values.
func pipValues(keys map[string]kind, option string, values []string) []string {
	k, known := keys[option]
	if !known {
		return nil
	}
	var out []string
	for _, v := range values {
		fields := []string{v}
		if k == link || k == names {
			fields = strings.Fields(v)
		}
		for _, f := range fields {
			if shown, ok := k.shown(f); ok {
				out = append(out, shown)
			}
		}
	}
	if k == word || k == file { // only whole: another line would be another value
		if len(out) != len(values) {
			return nil
		}
	}
	return slices.Clip(out)
}
