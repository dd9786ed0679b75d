package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// text is any string that check accepts; a nil check accepts all.
type text struct {
	to    *string
	check func(string) error
}

// Text is a string that check accepts. A nil check accepts all.
func Text(to *string, check func(string) error) Value { return text{to, check} }

func (v text) Set(s string) error {
	if v.check != nil {
		if err := v.check(s); err != nil {
			return err
		}
	}
	*v.to = s
	return nil
}

func (v text) Show() string { return *v.to }

// file is the name of a file whose content counts.
type file struct {
	text
	content *[]byte
}

// File is the name of a file. Another content, which is read elsewhere, is another value.
func File(to *string, content *[]byte) Value { return file{text{to, checkFile}, content} }

func (v file) Exact() string { return *v.to + "\x00" + string(*v.content) }

func checkFile(s string) error {
	if s == "" || strings.ContainsRune(s, 0) {
		return errors.New("this is not the name of a file; write its path")
	}
	return nil
}

// words is a list of strings that check accepts; a nil check accepts all.
type words struct {
	to     *[]string
	sample string
	check  func(string) error
}

// Words is a list of strings that check accepts, of which sample is one. A nil check accepts all but
// the empty one.
func Words(to *[]string, sample string, check func(string) error) Value {
	return words{to, sample, check}
}

func (v words) Clear()          { *v.to = nil }
func (v words) Show() string    { return strings.Join(*v.to, " ") }
func (v words) Example() string { return v.sample }

func (v words) Items() []string {
	items := make([]string, len(*v.to))
	for i, s := range *v.to {
		items[i] = quote(s)
	}
	return items
}

func (v words) Set(s string) error {
	if s == "" {
		return fmt.Errorf("the text is empty; write one such as %s", v.sample)
	}
	if v.check != nil {
		if err := v.check(s); err != nil {
			return err
		}
	}
	*v.to = append(*v.to, s)
	return nil
}

// names are words, each once, of which a single one needs no brackets.
type names struct{ words }

// Names is [Words] without repetition, of which a single one needs no brackets in the file.
func Names(to *[]string, sample string, check func(string) error) Value {
	return names{words{to, sample, check}}
}

func (names) lone() {}

func (v names) Set(s string) error {
	if slices.Contains(*v.to, s) {
		return fmt.Errorf("%q is there twice; keep one of them", s)
	}
	return v.words.Set(s)
}

// choice is one of a few words.
type choice struct {
	to      *string
	options []string
}

// Choice is one of the options.
func Choice(to *string, options ...string) Value { return choice{to, options} }

func (v choice) Set(s string) error {
	if !slices.Contains(v.options, s) {
		return fmt.Errorf("%q is not known; write %s", s, oneOf(v.options))
	}
	*v.to = s
	return nil
}

func (v choice) Show() string { return *v.to }

// level is a log level.
type level struct{ to *slog.Level }

// Level is a log level: debug, info, warn or error.
func Level(to *slog.Level) Value { return level{to} }

func (v level) Set(s string) error {
	names := []string{"debug", "info", "warn", "error"}
	if !slices.Contains(names, s) {
		return fmt.Errorf("%q is not a level; write %s", s, oneOf(names))
	}
	return v.to.UnmarshalText([]byte(s))
}

func (v level) Show() string { return strings.ToLower(v.to.String()) }

// boolean is true or false, spelled like that.
type boolean struct{ to *bool }

// Bool is true or false, spelled like that.
func Bool(to *bool) Value { return boolean{to} }

func (v boolean) Set(s string) error {
	if s != "true" && s != "false" {
		return fmt.Errorf("%q is neither true nor false; write one of these", s)
	}
	*v.to = s == "true"
	return nil
}

func (v boolean) Show() string { return strconv.FormatBool(*v.to) }

// address is host:port to listen on.
type address struct{ to *string }

// Address is host:port to listen on.
func Address(to *string) Value { return address{to} }

func (v address) Set(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port, such as 127.0.0.1:8080", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%q has no usable port; write a number from 0 to 65535 after the colon", s)
	}
	*v.to = s
	return nil
}

func (v address) Show() string { return *v.to }

// endpoint is a URL. What may be a credential is masked when it is shown: a password, a user that stands without one, as keys
// of APIs do, and the query, which may hold a token.
type endpoint struct {
	to      *string
	sample  string
	instead func(text string) string
}

// URL is an absolute HTTP address. A password, a user without one, and the query are masked when it is shown.
func URL(to *string) Value { return endpoint{to: to, sample: sampleURL} }

// URLLike is [URL], of which sample is one.
func URLLike(to *string, sample string) Value { return endpoint{to: to, sample: sample} }

// URLOr is [URL]; instead says, of a text that is none, what to write besides. Empty: nothing.
func URLOr(to *string, instead func(text string) string) Value {
	return endpoint{to, sampleURL, instead}
}

func (v endpoint) Set(s string) error {
	err := text{v.to, func(s string) error { return checkURL(s, v.sample) }}.Set(s)
	if err != nil && v.instead != nil {
		if more := v.instead(s); more != "" {
			return fmt.Errorf("%w, or %s", err, more)
		}
	}
	return err
}

func (v endpoint) Show() string {
	u, err := url.Parse(*v.to)
	if err != nil {
		return Mask
	}
	if u.RawQuery != "" {
		u.RawQuery = Mask
	}
	return MaskUser(u)
}

func (v endpoint) Exact() string { return *v.to }

// CheckURL accepts an absolute HTTP address.
func CheckURL(s string) error { return checkURL(s, sampleURL) }

// sampleURL is the address of a destination.
const sampleURL = "http://127.0.0.1:3000/webhooks"

func checkURL(s, sample string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil: // its text repeats the address, which may hold a password
		return errors.New("this is not a URL; write one like " + sample)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("this is not a full HTTP address; write one like " + sample)
	case u.Fragment != "":
		return errors.New("the URL has a fragment, which is never sent; leave out what follows the #")
	}
	return nil
}

// Mask stands for what is not shown.
const Mask = "****"

// MaskUser returns a URL with its password masked, or its user if that has none: a key of an API often stands there alone.
func MaskUser(u *url.URL) string {
	if password, _ := u.User.Password(); u.User != nil && password == "" {
		u.User = url.User(Mask)
	}
	return MaskPassword(u)
}

// MaskPassword returns a URL with its password masked. Its user is shown.
func MaskPassword(u *url.URL) string {
	if _, ok := u.User.Password(); ok {
		u.User = url.UserPassword(u.User.Username(), Mask)
	}
	return strings.ReplaceAll(u.String(), url.QueryEscape(Mask), Mask)
}

// networks is a list of networks or single addresses.
type networks struct{ to *[]netip.Prefix }

// Networks is a list of networks, or of addresses as the networks of themselves alone, each once.
func Networks(to *[]netip.Prefix) Value { return networks{to} }

func (v networks) Clear()          { *v.to = nil }
func (v networks) Example() string { return "192.0.2.0/24" }

func (v networks) Show() string {
	texts := make([]string, len(*v.to))
	for i, p := range *v.to {
		texts[i] = p.String()
	}
	return strings.Join(texts, " ")
}

func (v networks) Items() []string {
	items := make([]string, len(*v.to))
	for i, p := range *v.to {
		items[i] = quote(p.String())
	}
	return items
}

func (v networks) Set(s string) error {
	p, err := parseNetwork(s)
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

// parseNetwork reads a network, or an address as the network of itself alone. IPv4 in the form of IPv6
// is IPv4: connections are compared like that.
func parseNetwork(s string) (netip.Prefix, error) {
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
