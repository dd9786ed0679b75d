package conformance

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// hide returns err without what the URL holds.
func (t Target) hide(err error) error {
	if masked := t.masked(err.Error()); masked != err.Error() {
		return errors.New(masked)
	}
	return err
}

// masked takes the address and the password of the engine out of a text: reports are sent to others. Drivers also say the
// addresses that a name stands for, so every address of IP goes.
func (t Target) masked(text string) string {
	return withoutAddresses(strings.NewReplacer(t.secrets()...).Replace(text))
}

// secrets are what the URL holds that must not be told, each with what takes its place.
func (t Target) secrets() []string {
	secrets := []string{t.URL, "(the URL)"}
	hide := func(value, as string, least int) {
		if len(value) >= least {
			secrets = append(secrets, value, as)
		}
	}
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme == "" {
		return secrets
	}
	password, _ := u.User.Password()
	hide(password, "(the password)", 1)
	hosts := []string{u.Host}
	for name, values := range u.Query() {
		for _, v := range values {
			switch strings.ToLower(name) {
			case "password", "sslpassword":
				hide(v, "(the password)", 1)
			case "user":
				hide(v, "(the user)", shortest)
			case "host", "hostaddr":
				hosts = append(hosts, v)
			}
		}
	}
	for _, host := range strings.Split(strings.Join(hosts, ","), ",") {
		hide(host, "(the server)", 1)
		if name, _, found := strings.Cut(host, ":"); found {
			hide(name, "(the server)", shortest)
		}
	}
	return secrets
}

// shortest is how long a name must be to be hidden. A shorter one would take parts of words with it.
const shortest = 4

// wordOfAddress is what an address can be a part of; whether it is one is looked at.
var (
	ipv4          = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	wordOfAddress = regexp.MustCompile(`[0-9A-Za-z_.:%-]*::?[0-9A-Za-z_.:%-]*`)
)

// withoutAddresses masks addresses of IP.
func withoutAddresses(text string) string {
	text = wordOfAddress.ReplaceAllStringFunc(text, func(word string) string {
		bare := strings.TrimRight(word, ".")
		if a, err := netip.ParseAddr(bare); err != nil {
			bare = strings.TrimSuffix(bare, ":") // as in "dial ::1: refused"
			if a, err = netip.ParseAddr(bare); err != nil || a.IsUnspecified() {
				return word
			}
		} else if a.IsUnspecified() { // a word such as "::"
			return word
		}
		return "(the server)" + word[len(bare):]
	})
	return ipv4.ReplaceAllString(text, "(the server)")
}
