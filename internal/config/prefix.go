package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// prefixes is a list of networks or single addresses.
type prefixes struct{ to *[]netip.Prefix }

func (v prefixes) clear()          { *v.to = nil }
func (v prefixes) example() string { return "192.0.2.0/24" }

func (v prefixes) show() string {
	texts := make([]string, len(*v.to))
	for i, p := range *v.to {
		texts[i] = p.String()
	}
	return strings.Join(texts, " ")
}

func (v prefixes) items() []string {
	items := make([]string, len(*v.to))
	for i, p := range *v.to {
		items[i] = yamlText(p.String())
	}
	return items
}

func (v prefixes) set(s string) error {
	p, err := parsePrefix(s)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a network; write one such as 192.0.2.0/24, or a single address", s)
	case p != p.Masked():
		return fmt.Errorf("%q is an address inside of a network; write %s, or the address without what follows the slash", s, p.Masked())
	case slices.Contains(*v.to, p):
		return fmt.Errorf("%s is there twice; keep one of them", p)
	}
	*v.to = append(*v.to, p)
	return nil
}

// parsePrefix reads a network, or an address as the network of itself alone. IPv4 in the form of IPv6
// is IPv4: connections are compared like that.
func parsePrefix(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is not an address", s)
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err == nil && p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return p, fmt.Errorf("%q is wider than IPv4", s)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p, err
}
