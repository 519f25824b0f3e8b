package route

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// domains finds the virtual host of an authority. All keys are in lower case.
type domains struct {
	exact    map[string]*VirtualHost
	suffixes affixes
	prefixes affixes
	any      *VirtualHost
}

// affixes are the domains of one kind without their asterisk, and their lengths, the longest first.
type affixes struct {
	hosts   map[string]*VirtualHost
	lengths []int
}

// add enters the domains of a virtual host. The first virtual host of a domain keeps it.
func (d *domains) add(h *VirtualHost) error {
	f := faults{host: h.proto.GetName(), route: -1}
	if len(h.proto.GetDomains()) == 0 {
		f.addf("domains", "empty, so that no request matches")
	}
	for _, domain := range h.proto.GetDomains() {
		if !d.enter(strings.ToLower(domain), h, &f) {
			f.addf("domains", "%q is a domain of a virtual host before it", domain)
		}
	}
	return errors.Join(f.all...)
}

// enter is false if the domain is taken.
func (d *domains) enter(domain string, h *VirtualHost, f *faults) bool {
	inner, last := strings.TrimPrefix(domain, "*"), strings.TrimSuffix(domain, "*")
	switch {
	// VIEW-60: a malformed domain matches nothing, and the others stay good.
	case domain == "", strings.Count(domain, "*") > 1, strings.Contains(domain, "*") && inner == domain && last == domain:
		f.addf("domains", "%q is neither a name, *suffix, prefix* nor *", domain)
		return true
	case domain == "*":
		if d.any != nil {
			return false
		}
		d.any = h
		return true
	case inner != domain:
		return d.suffixes.enter(inner, h)
	case last != domain:
		return d.prefixes.enter(last, h)
	default:
		return put(&d.exact, domain, h)
	}
}

func (a *affixes) enter(text string, h *VirtualHost) bool {
	if !slices.Contains(a.lengths, len(text)) {
		a.lengths = append(a.lengths, len(text))
	}
	return put(&a.hosts, text, h)
}

func put(hosts *map[string]*VirtualHost, key string, h *VirtualHost) bool {
	if *hosts == nil {
		*hosts = map[string]*VirtualHost{}
	}
	if _, taken := (*hosts)[key]; taken {
		return false
	}
	(*hosts)[key] = h
	return true
}

func (d *domains) order() {
	for _, a := range []*affixes{&d.suffixes, &d.prefixes} {
		slices.SortFunc(a.lengths, func(x, y int) int { return cmp.Compare(y, x) })
	}
}

// VIEW-60: exact, suffix, prefix, any; of a kind the longest.
func (d *domains) find(authority string) *VirtualHost {
	var space [255]byte
	host := lower(space[:0], authority)
	if h, ok := d.exact[string(host)]; ok {
		return h
	}
	// An asterisk stands for at least one character.
	for _, n := range d.suffixes.lengths {
		if n < len(host) {
			if h, ok := d.suffixes.hosts[string(host[len(host)-n:])]; ok {
				return h
			}
		}
	}
	for _, n := range d.prefixes.lengths {
		if n < len(host) {
			if h, ok := d.prefixes.hosts[string(host[:n])]; ok {
				return h
			}
		}
	}
	return d.any
}

// lower appends s in lower case.
func lower(to []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		to = append(to, c)
	}
	return to
}

// WithoutPort cuts the port off an authority, as ignore_port_in_host_matching asks for. The colons of an
// IPv6 address are not one.
func WithoutPort(authority string) string {
	colon := strings.LastIndexByte(authority, ':')
	if colon < 0 || strings.IndexByte(authority[colon:], ']') >= 0 {
		return authority
	}
	if strings.Count(authority, ":") > 1 && authority[0] != '[' {
		return authority
	}
	return authority[:colon]
}
