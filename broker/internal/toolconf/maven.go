package toolconf

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
)

// mavenTree are the elements of settings.xml that are shown, below those that hold them: what ends in a slash holds
// others. Servers and properties are not among them.
func mavenTree() map[string]kind {
	repository := map[string]kind{"": 0, "id": word, "name": word, "url": link, "layout": word}
	for _, of := range [...]string{"releases", "snapshots"} {
		repository[of+"/"] = 0
		for _, k := range [...]string{"enabled", "updatePolicy", "checksumPolicy"} {
			repository[of+"/"+k] = word
		}
	}
	tree := map[string]kind{"settings/": 0}
	add := func(at string, below map[string]kind) {
		for k, v := range below {
			if k == "" {
				tree[at] = 0
			} else {
				tree[at+k] = v
			}
		}
	}
	add("settings/", map[string]kind{"localRepository": file, "offline": word, "interactiveMode": word,
		"usePluginRegistry": word, "mirrors/": 0, "proxies/": 0, "profiles/": 0, "activeProfiles/": 0, "pluginGroups/": 0,
		"activeProfiles/activeProfile": word, "pluginGroups/pluginGroup": word})
	add("settings/mirrors/mirror/", map[string]kind{"": 0, "id": word, "name": word, "url": link, "layout": word,
		"mirrorOf": names, "blocked": word, "mirrorOfLayouts": word})
	add("settings/proxies/proxy/", map[string]kind{"": 0, "id": word, "active": word, "protocol": word, "host": names,
		"port": word, "nonProxyHosts": names})
	add("settings/profiles/profile/", map[string]kind{"": 0, "id": word, "activation/": 0,
		"activation/activeByDefault": word, "activation/jdk": word, "repositories/": 0, "pluginRepositories/": 0})
	add("settings/profiles/profile/repositories/repository/", repository)
	add("settings/profiles/profile/pluginRepositories/pluginRepository/", repository)
	return tree
}

// Maven is a settings.xml without what may hold a credential. It fails where the file is no such document, and where an
// address would have to be left out: a mirror without one would be another.
func Maven(text []byte) (string, bool) {
	if _, ok := lines(text); !ok {
		return "", false
	}
	m := mavenCopy{dec: xml.NewDecoder(bytes.NewReader(text)), tree: mavenTree()}
	m.out.WriteString("<!-- " + strings.Trim(header, "# \n") + " -->\n")
	for {
		tok, err := m.dec.Token()
		if err == io.EOF && m.seen {
			return m.out.String(), true
		}
		if err != nil || !m.top(tok) {
			return "", false
		}
	}
}

// mavenCopy is a document on its way.
type mavenCopy struct {
	dec  *xml.Decoder
	tree map[string]kind
	out  strings.Builder
	seen bool
}

// top takes what stands outside of elements.
func (m *mavenCopy) top(tok xml.Token) bool {
	switch t := tok.(type) {
	case xml.Comment:
		return true
	case xml.ProcInst:
		return t.Target == "xml"
	case xml.CharData:
		return len(bytes.TrimSpace(t)) == 0
	case xml.StartElement:
		if m.seen || t.Name.Local != "settings" {
			return false
		}
		m.seen = true
		return m.holder("settings/", 0)
	}
	return false // a document type: entities could stand for anything
}

// holder copies an element that holds others, after its beginning.
func (m *mavenCopy) holder(at string, depth int) bool {
	indent := strings.Repeat("  ", depth)
	name := at[strings.LastIndexByte(strings.TrimSuffix(at, "/"), '/')+1 : len(at)-1]
	m.out.WriteString(indent + "<" + name + ">\n")
	for {
		tok, err := m.dec.Token()
		if err != nil {
			return false
		}
		switch t := tok.(type) {
		case xml.EndElement:
			m.out.WriteString(indent + "</" + name + ">\n")
			return true
		case xml.StartElement:
			below := at + t.Name.Local
			if strings.Contains(t.Name.Local, "/") {
				return false
			}
			if _, ok := m.tree[below+"/"]; ok {
				if !m.holder(below+"/", depth+1) {
					return false
				}
			} else if k, ok := m.tree[below]; !ok {
				if m.dec.Skip() != nil {
					return false
				}
			} else if !m.leaf(t, k, indent+"  ") {
				return false
			}
		case xml.CharData:
			if len(bytes.TrimSpace(t)) != 0 {
				return false
			}
		case xml.Comment:
		default:
			return false
		}
	}
}

// leaf copies an element that holds a value.
func (m *mavenCopy) leaf(start xml.StartElement, k kind, indent string) bool {
	var value strings.Builder
	for {
		tok, err := m.dec.Token()
		if err != nil {
			return false
		}
		switch t := tok.(type) {
		case xml.CharData:
			value.Write(t)
		case xml.Comment:
		case xml.EndElement:
			v, ok := k.shown(strings.TrimSpace(value.String()))
			if ok {
				m.out.WriteString(indent + "<" + start.Name.Local + ">")
				_ = xml.EscapeText(&m.out, []byte(v)) // a Builder takes all
				m.out.WriteString("</" + start.Name.Local + ">\n")
			}
			return ok || k != link && k != names
		default:
			return false
		}
	}
}
