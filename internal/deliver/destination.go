package deliver

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
)

// destination is a [Destination] made ready for use.
type destination struct {
	name          string
	url           *url.URL
	address       string // the same without the user and password
	authorization string // from the user and password of the address
	timeout       time.Duration
	schedule      retry.Schedule
	giveUp        time.Duration
	permanent     []int
	header        http.Header
	rules         map[string]*header.Rule // by the name of the source
	choice        header.Choice
	secrets       [][]byte
	signers       map[string]Signer
	stale         StalePolicy
	transport     http.RoundTripper
}

// newDestination checks the settings. Its errors repeat no secret and no address, which may hold one.
func newDestination(name string, s Destination, transport http.RoundTripper) (*destination, error) {
	d := &destination{
		name:      name,
		timeout:   s.Timeout,
		schedule:  s.Schedule,
		giveUp:    s.GiveUp,
		permanent: s.Permanent,
		stale:     s.Stale,
		signers:   s.Signers,
		rules:     s.Rules,
		transport: transport,
	}
	return d, errors.Join(d.locate(s.URL), s.validate(), d.headers(s), d.keys(s.Secrets))
}

// keys reads the secrets. Errors do not repeat them.
func (d *destination) keys(secrets []string) (err error) {
	d.secrets, err = outgoing.Keys(secrets)
	return err
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
