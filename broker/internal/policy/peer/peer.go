package peer

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// Host is a normalised peer: a DNS name in lower case without its last dot, or an address.
type Host struct {
	Name string
	Addr netip.Addr
}

func (h Host) String() string {
	if h.Addr.IsValid() {
		return h.Addr.String()
	}
	return h.Name
}

// Parse normalises a host. Anything with a second reading (non-ASCII, @, %, empty labels, 0x7f.1, zones) is refused.
func Parse(s string) (Host, error) {
	bare := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		bare = s[1 : len(s)-1]
	}
	if strings.Contains(bare, ":") {
		a, err := netip.ParseAddr(bare)
		if err != nil || a.Zone() != "" {
			return Host{}, fmt.Errorf("reading host %s: not an IPv6 address without a zone", excerpt.Quote(s))
		}
		return Host{Addr: a.Unmap()}, nil
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return Host{Addr: a}, nil
	}
	name, err := hostName(s)
	if err != nil {
		return Host{}, fmt.Errorf("reading host %s: %w", excerpt.Quote(s), err)
	}
	return Host{Name: name}, nil
}

func hostName(s string) (string, error) {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 {
		return "", errors.New("a name has 1 to 253 characters")
	}
	lower := make([]byte, len(s))
	label := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
			label++
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
			label++
		case c == '-' && label > 0 && i+1 < len(s) && s[i+1] != '.':
			label++
		case c == '.' && label > 0:
			label = 0
		case c >= 0x80:
			return "", errors.New("it has characters outside ASCII; write the xn-- form")
		default:
			return "", fmt.Errorf("%s is not allowed at position %d", excerpt.Quote(string(rune(c))), i+1)
		}
		if label > 63 {
			return "", errors.New("a label is longer than 63 characters")
		}
		lower[i] = c
	}
	out := string(lower)
	// A last label of digits is one of the many spellings of an IPv4 address that resolvers accept.
	last := out[strings.LastIndexByte(out, '.')+1:]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", errors.New("it looks like a number; write the address as a.b.c.d")
	}
	return out, nil
}

// Pattern matches peers. Grammar:
//
//	example.com   *.example.com (every name below, not example.com)   1.2.3.4   10.0.0.0/8   [::1]   2001:db8::/32   *
//	each with :443 or :8000-8100 or :* ; without a port an allow or ask covers 80 and 443, a deny every port;
//	and then with /udp, or without a port with /icmp (ping), else (or with /tcp) it is about TCP; a name that is
//	about TCP may end in ,tls=sni: its ports are for those connections only
//	that name it themselves, in a TLS ClientHello or in HTTP's Host
type Pattern struct {
	name   string
	suffix bool // name stands for everything below it
	any    bool
	prefix netip.Prefix
	lo, hi uint16 // 0,0: no port given
	udp    bool
	sni    bool
	icmp   bool
}

// HasForm says whether a pattern of a host cannot be taken for a plain name: it has a dot, a port, a range or a
// wildcard, or is localhost.
func HasForm(pattern string) bool {
	return strings.ContainsAny(pattern, ".:*/") || pattern == "localhost"
}

// ParsePattern reads pattern text.
func ParsePattern(s string) (Pattern, error) {
	p, err := parsePattern(s)
	if err != nil {
		return Pattern{}, fmt.Errorf("reading host pattern %s: %w", excerpt.Quote(s), err)
	}
	return p, nil
}

func parsePattern(s string) (p Pattern, err error) {
	if strings.Contains(s, "://") {
		return p, errors.New("an address of a page; write its host alone, as HOST or HOST:PORT")
	}
	s, p.sni = strings.CutSuffix(s, ",tls=sni")
	s, tcp := strings.CutSuffix(s, "/tcp") // what is meant without it
	if !tcp {
		s, p.udp = strings.CutSuffix(s, "/udp")
	}
	if !p.udp && !tcp {
		s, p.icmp = strings.CutSuffix(s, "/icmp")
	}
	host, port := splitPort(s)
	if port != "" && strings.Contains(port, "/") {
		return p, errors.New("a protocol is tcp or udp, or icmp without a port")
	}
	if p.icmp && port != "" {
		return p, errors.New("icmp has no ports")
	}
	if port != "" {
		if p.lo, p.hi, err = parsePorts(port[1:]); err != nil {
			return p, err
		}
	}
	if base, ok := strings.CutPrefix(host, "*"); ok {
		if base == "" {
			p.any = true
			return p, p.checkSNI()
		}
		if base[0] != '.' {
			return p, errors.New("* must be a whole label: *.example.com")
		}
		p.suffix, host = true, base[1:]
		if p.name, err = hostName(host); err != nil {
			return p, err
		}
		return p, p.checkSNI()
	}
	if strings.Contains(host, "/") {
		p.prefix, err = netip.ParsePrefix(strings.Trim(host, "[]"))
		if err == nil && p.prefix.Addr().Is4In6() {
			err = errors.New("write an IPv4-mapped range as IPv4")
		}
		if err == nil && p.prefix != p.prefix.Masked() {
			err = fmt.Errorf("the address has bits beyond the prefix; did you mean %s?", p.prefix.Masked())
		}
		if err != nil {
			return p, err
		}
		return p, p.checkSNI()
	}
	h, err := Parse(host)
	if err != nil {
		return p, err
	}
	if h.Addr.IsValid() {
		p.prefix = netip.PrefixFrom(h.Addr, h.Addr.BitLen())
	}
	p.name = h.Name
	return p, p.checkSNI()
}

func (p Pattern) checkSNI() error {
	switch {
	case !p.sni:
	case p.udp || p.icmp:
		return errors.New("tls=sni is about TCP")
	case p.name == "":
		return errors.New("tls=sni needs a name: an address has none to compare")
	}
	return nil
}

// splitPort cuts at the colon that cannot belong to an IPv6 address; port keeps its colon.
func splitPort(s string) (host, port string) {
	i := strings.LastIndexByte(s, ':')
	switch {
	case i < 0:
		return s, ""
	case strings.HasPrefix(s, "["):
		if e := strings.IndexByte(s, ']'); e < i {
			return s[:i], s[i:]
		}
		return s, ""
	case strings.Count(s, ":") > 1:
		return s, ""
	}
	return s[:i], s[i:]
}

func parsePorts(s string) (lo, hi uint16, err error) {
	if s == "*" {
		return 1, 65535, nil
	}
	a, b, span := strings.Cut(s, "-")
	if !span {
		b = a
	}
	l, err1 := ParsePort(a)
	h, err2 := ParsePort(b)
	if err1 != nil || err2 != nil || l > h {
		return 0, 0, errors.New("a port is 1 to 65535, A-B with A <= B, or *")
	}
	return l, h, nil
}

// ParsePort reads a number of a port.
func ParsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, errors.New("bad port")
	}
	return uint16(n), nil
}

// Match reports whether the pattern covers h at port. anyPort makes a pattern without a port cover every port,
// as a deny does.
func (p Pattern) Match(h Host, port int, anyPort bool) bool {
	switch {
	case (p.udp || p.icmp) && !anyPort:
		return false
	case p.lo != 0:
		if port < int(p.lo) || port > int(p.hi) {
			return false
		}
	case !anyPort && port != 80 && port != 443:
		return false
	}
	return p.matchHost(h)
}

// MatchHost reports whether the pattern covers h at some port.
func (p Pattern) MatchHost(h Host) bool { return p.matchHost(h) }

// Prefix returns the addresses of a pattern that is written as such; ok is false for names and for *.
func (p Pattern) Prefix() (prefix netip.Prefix, ok bool) { return p.prefix, p.prefix.IsValid() }

// Ports returns the pattern's ports, 0 and 0 if it gives none.
func (p Pattern) Ports() (lo, hi uint16) { return p.lo, p.hi }

// UDP reports whether the pattern is about UDP instead of TCP.
func (p Pattern) UDP() bool { return p.udp }

// SNI reports whether connections must name the host themselves.
func (p Pattern) SNI() bool { return p.sni }

// WithSNI is the pattern with that demand, where it can have one.
func (p Pattern) WithSNI() Pattern {
	p.sni = p.name != "" && !p.udp && !p.icmp
	return p
}

// ICMP reports whether the pattern is about echo requests instead of TCP.
func (p Pattern) ICMP() bool { return p.icmp }

// Any reports whether the pattern covers every name and address.
func (p Pattern) Any() bool { return p.any }

func (p Pattern) matchHost(h Host) bool {
	switch {
	case p.any:
		return h.Name != "" || h.Addr.IsValid()
	case p.prefix.IsValid():
		return h.Addr.IsValid() && p.prefix.Contains(h.Addr.Unmap())
	case p.suffix:
		return len(h.Name) > len(p.name) && strings.HasSuffix(h.Name, p.name) && h.Name[len(h.Name)-len(p.name)-1] == '.'
	}
	return h.Name != "" && h.Name == p.name
}

// Covers reports that everything q opens p opens too. Addresses of the host and of private networks are open only to a
// pattern that is an address or a range, so no other one covers an address.
func (p Pattern) Covers(q Pattern) bool {
	return (p.prefix.IsValid() || !q.prefix.IsValid()) && p.Includes(q)
}

// Includes reports that p is about everything that q is about, as a refusal is.
func (p Pattern) Includes(q Pattern) bool {
	switch {
	case p.udp != q.udp, p.icmp != q.icmp, p.sni && !q.sni:
		return false
	case p.lo == 0 && q.lo == 0:
	case p.lo == 0:
		if q.lo != q.hi || q.lo != 80 && q.lo != 443 {
			return false
		}
	case q.lo == 0:
		if p.lo > 80 || p.hi < 443 {
			return false
		}
	case q.lo < p.lo || q.hi > p.hi:
		return false
	}
	switch {
	case p.any:
		return true
	case q.any:
		return false
	case p.prefix.IsValid() || q.prefix.IsValid():
		return p.prefix.IsValid() && q.prefix.IsValid() && p.prefix.Bits() <= q.prefix.Bits() &&
			p.prefix.Contains(q.prefix.Addr())
	case q.suffix && p.suffix && p.name == q.name:
		return true
	}
	return p.matchHost(Host{Name: q.name}) && (!q.suffix || p.suffix)
}

// Compare is positive if p is more specific than q.
func (p Pattern) Compare(q Pattern) int {
	if d := p.rank() - q.rank(); d != 0 {
		return d
	}
	if d := len(p.name) - len(q.name); d != 0 {
		return d
	}
	return q.ports() - p.ports()
}

// rank orders any < range by length < everything below a name < one name or address.
func (p Pattern) rank() int {
	switch {
	case p.any:
		return 0
	case p.prefix.IsValid() && p.prefix.IsSingleIP():
		return 1000
	case p.prefix.IsValid():
		return 1 + p.prefix.Bits()
	case p.suffix:
		return 500
	}
	return 1000
}

func (p Pattern) ports() int {
	if p.lo == 0 {
		return 1 << 16
	}
	return int(p.hi) - int(p.lo)
}

// Wide reports a pattern through which data can leave in the names themselves; loaders warn about it.
func (p Pattern) Wide() bool { return p.any || p.suffix && !strings.Contains(p.name, ".") }

func (p Pattern) String() string {
	if p.sni {
		p.sni = false
		return p.String() + ",tls=sni"
	}
	if p.udp {
		p.udp = false
		return p.String() + "/udp"
	}
	if p.icmp {
		p.icmp = false
		return p.String() + "/icmp"
	}
	s := p.name
	switch {
	case p.any:
		s = "*"
	case p.prefix.IsValid() && p.prefix.IsSingleIP():
		s = p.prefix.Addr().String()
	case p.prefix.IsValid():
		s = p.prefix.String()
	case p.suffix:
		s = "*." + p.name
	}
	if p.lo == 0 {
		return s
	}
	if p.prefix.IsValid() && p.prefix.Addr().Is6() {
		s = "[" + s + "]"
	}
	switch {
	case p.lo == 1 && p.hi == 65535:
		return s + ":*"
	case p.lo != p.hi:
		return s + ":" + strconv.Itoa(int(p.lo)) + "-" + strconv.Itoa(int(p.hi))
	}
	return s + ":" + strconv.Itoa(int(p.lo))
}

// Below returns the name that a wildcard pattern covers everything below of, or "".
func (p Pattern) Below() string {
	if p.suffix {
		return p.name
	}
	return ""
}
