package foreign

import (
	"encoding/json"
	"fmt"
	"strings"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// Export writes what is in force, in our form ("toml": config and policy in one text, each with a heading) or as
// settings of sandbox-runtime ("srt"), where names are those that are hidden in the project at any depth. What the
// other form cannot say is listed.
func Export(format string, e policy.Effective, s policy.Store, names []string) (string, []policy.Unmapped, error) {
	switch format {
	case "toml":
		return policy.Text(e, s), nil, nil
	case "srt":
		return exportSRT(e, s, names)
	}
	return "", nil, fmt.Errorf("exporting policy: unknown format %s; known are toml and srt", excerpt.Quote(format))
}

func exportSRT(e policy.Effective, s policy.Store, names []string) (string, []policy.Unmapped, error) {
	type network struct {
		AllowedDomains   []string `json:"allowedDomains"`
		DeniedDomains    []string `json:"deniedDomains"`
		AllowUnixSockets []string `json:"allowUnixSockets,omitempty"`
	}
	type filesystem struct {
		DenyRead   []string `json:"denyRead"`
		AllowWrite []string `json:"allowWrite"`
		DenyWrite  []string `json:"denyWrite"`
	}
	var missing []policy.Unmapped
	n, f := network{[]string{}, []string{}, nil}, filesystem{[]string{}, []string{}, []string{}}
	if reach, hosts := e.Reach(); reach == policy.SomeHosts {
		n.AllowedDomains = hosts
	} else if reach == policy.AllHosts {
		missing = append(missing, policy.Unmapped{Name: "network.allow", Why: "all hosts cannot be expressed; list them"})
	}
	for _, h := range e.Concealed() {
		if h.Kind == policy.KindPath {
			f.DenyRead = append(f.DenyRead, h.Rule.String())
		}
	}
	if e.Vars.Project != "" {
		for _, name := range names {
			f.DenyRead = append(f.DenyRead, e.Vars.Project+"/**/"+name)
		}
	}
	for _, p := range e.Writable() {
		p, _ = pathname.SplitOptional(p)
		f.AllowWrite = append(f.AllowWrite, p)
	}
	for _, r := range s.InForce() {
		text := strings.TrimSuffix(r.Path().String(), "/**")
		switch {
		case r.Kind == policy.KindHost && r.Decision == policy.Deny:
			n.DeniedDomains = append(n.DeniedDomains, r.Pattern)
		case r.Kind == policy.KindHost && r.Decision == policy.Allow:
			n.AllowedDomains = append(n.AllowedDomains, r.Pattern)
		case r.Kind == policy.KindSocket && r.Decision == policy.Allow:
			n.AllowUnixSockets = append(n.AllowUnixSockets, text)
		case r.Kind == policy.KindPath && r.Decision == policy.Deny && r.Access == policy.Read:
			f.DenyRead = append(f.DenyRead, text)
		case r.Kind == policy.KindPath && r.Decision == policy.Deny && r.Access == policy.Write:
			f.DenyWrite = append(f.DenyWrite, text)
		case r.Kind == policy.KindPath && r.Decision == policy.Allow && r.Access == policy.Write:
			f.AllowWrite = append(f.AllowWrite, text)
		default:
			missing = append(missing, policy.Unmapped{Name: r.String(), Why: "no equivalent"})
		}
	}
	out, err := json.MarshalIndent(struct {
		Network    network    `json:"network"`
		Filesystem filesystem `json:"filesystem"`
	}{n, f}, "", "  ")
	return string(out) + "\n", missing, err
}
