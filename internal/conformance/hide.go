package conformance

import (
	"errors"
	"net/url"
	"strings"
)

// hide returns err without what the URL holds.
func (t Target) hide(err error) error {
	if masked := t.masked(err.Error()); masked != err.Error() {
		return errors.New(masked)
	}
	return err
}

// masked takes the address and the password of the engine out of a text: reports are sent to others.
func (t Target) masked(text string) string {
	secrets := []string{t.URL, "(the URL)"}
	if u, err := url.Parse(t.URL); err == nil && u.Scheme != "" {
		if password, is := u.User.Password(); is && password != "" {
			secrets = append(secrets, password, "(the password)")
		}
		for _, host := range strings.Split(u.Host, ",") {
			if host != "" {
				secrets = append(secrets, host, "(the server)")
			}
			if name, _, found := strings.Cut(host, ":"); found && len(name) > 3 {
				secrets = append(secrets, name, "(the server)")
			}
		}
	}
	return strings.NewReplacer(secrets...).Replace(text)
}
