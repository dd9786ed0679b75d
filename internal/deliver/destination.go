package deliver

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/time/rate"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/outgoing"
)

// destination is a [Destination] made ready for use. It is not changed afterwards.
type destination struct {
	Destination
	name          string
	url           *url.URL
	address       string // the same without the user and password
	authorization string // from the user and password of the address
	header        http.Header
	choice        header.Choice
	secrets       [][]byte
	transport     http.RoundTripper
	limiter       *rate.Limiter // nil: no rate
}

// newDestination checks the settings. Its errors repeat no secret and no address, which may hold one. What can be
// kept of the destination of that name before is kept; it may be nil. So may the transport: it makes one then, with
// dial, if that is not nil.
func newDestination(name string, s Destination, before *destination, transport http.RoundTripper, dial dialer) (*destination, error) {
	d := &destination{Destination: s, name: name, transport: transport}
	var err error
	if d.Breaker, err = s.Breaker.fit(s.Schedule); err != nil {
		return nil, err
	}
	if err := errors.Join(d.locate(s.URL), s.validate(), d.headers(s), d.keys(s.Secrets)); err != nil {
		return nil, err
	}
	switch {
	case transport != nil:
	case before != nil && before.connects(d):
		d.transport = before.transport
	default:
		d.transport = outgoing.NewTransport(func() *http.Transport { return newTransport(s.Policy, s.TLS, s.Concurrency, dial) })
	}
	switch {
	case before != nil && before.Rate == s.Rate:
		d.limiter = before.limiter
	case s.Rate > 0:
		// A tenth of a second may be made up for after a pause.
		d.limiter = rate.NewLimiter(rate.Limit(s.Rate), max(1, int(s.Rate/10)))
	}
	return d, nil
}

// connects reports whether another destination connects in the same way.
func (d *destination) connects(other *destination) bool {
	return d.TLS == other.TLS && d.Concurrency == other.Concurrency && reflect.DeepEqual(d.Policy, other.Policy)
}

// same reports whether what is known about the health of the destination holds for another one.
func (d *destination) same(other *destination) bool {
	return d.URL == other.URL && d.TLS == other.TLS && d.Breaker == other.Breaker
}

// keys reads the secrets. Errors do not repeat them.
func (d *destination) keys(secrets []string) (err error) {
	d.secrets, err = outgoing.Keys(secrets)
	switch {
	case err != nil || len(d.HTTPKeys) == 0:
		return err
	case len(d.HTTPKeys) > outgoing.MaxHTTPKeys:
		return fmt.Errorf("there are %d keys for HTTP message signatures; at most %d sign a request", len(d.HTTPKeys), outgoing.MaxHTTPKeys)
	}
	return outgoing.CheckHTTPAddress(cmp.Or(d.AppURL, d.URL))
}

// signed returns the address that HTTP message signatures cover of a request that goes to u: with the query of that, if it
// has one.
func (d *destination) signed(u *url.URL) string {
	switch {
	case d.AppURL == "":
		return u.String()
	case u.RawQuery == "":
		return d.AppURL
	}
	place, _, _ := strings.Cut(d.AppURL, "?")
	return place + "?" + u.RawQuery
}

// locate reads the URL.
func (d *destination) locate(text string) error {
	u, err := outgoing.ParseAddress(text)
	if err != nil {
		return err
	}
	if u.User != nil {
		password, _ := u.User.Password()
		d.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
		u.User = nil
	}
	d.url, d.address = u, u.String()
	return nil
}

// headers reads what a destination's settings say about headers.
func (d *destination) headers(s Destination) error {
	for name, values := range s.Header {
		if err := header.CheckSet(name); err != nil {
			return err
		}
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case slices.ContainsFunc(values, func(v string) bool { return !header.ValidValue(v) }):
			return fmt.Errorf("the header %q cannot be sent: its value has characters that no header has", name)
		case canonical == "Authorization" && d.authorization != "":
			return errors.New("the header Authorization is made of the user in the address: remove one of the two")
		}
		if d.header == nil {
			d.header = http.Header{}
		}
		d.header[canonical] = append(d.header[canonical], values...)
	}
	if len(s.PassHeader) > 0 && len(s.DropHeader) > 0 {
		return errors.New("the provider's headers are either those to pass or those to drop: write one of the two lists")
	}
	for _, name := range slices.Concat(s.PassHeader, s.DropHeader) {
		if !header.ValidName(name) {
			return fmt.Errorf("%q cannot be the name of a header", name)
		}
	}
	for _, name := range s.AlsoPass {
		if err := header.CheckPass(name); err != nil {
			return err
		}
	}
	if len(s.PassHeader)+len(s.DropHeader)+len(s.AlsoPass) > 0 {
		d.choice = header.NewChoice(s.PassHeader, s.DropHeader, s.AlsoPass)
	}
	return nil
}
