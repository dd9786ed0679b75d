package outgoing

import (
	"errors"
	"net/url"
)

// ParseAddress reads the address that requests go to. Its error repeats nothing of the address, which may hold a
// secret: of "https://user:pass/word@host" even the reason why it is none does.
func ParseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("the address must begin with http:// or https:// and name a host")
	}
	return u, nil
}
