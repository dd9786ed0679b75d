package deliver

import (
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/passing"
)

// Destination is one place to deliver to.
type Destination struct {
	// Name is what the journal calls it.
	Name string
	// URL is where events are POSTed to, http or https. A user and password in it are sent as basic
	// authentication.
	URL string
	// Timeout bounds one attempt, from dialling to the status of the answer. Zero means
	// [DefaultTimeout].
	Timeout time.Duration
	// Schedule says when failed attempts are tried again. Nil means [DefaultSchedule].
	Schedule Schedule
	// GiveUp is how long after the receipt of an event it may still be tried again: a retry that would
	// come later is not made, and the event is dead. An attempt that begins later all the same, because
	// the event was re-driven or had to wait, has the whole of its schedule. Zero: the schedule alone
	// decides.
	GiveUp time.Duration
	// Concurrency is how many attempts at it are under way at once. Zero means that of the [Options].
	Concurrency int
	// Rate is how many attempts begin per second, evenly spread. Zero: as many as there are.
	Rate float64
	// Permanent are the statuses, besides 410, after which an event is dead at once.
	Permanent []int
	// Header is added to every delivery, in place of what the provider sent under the same name. It can
	// not hold what is ours to set: see docs/destinations.md.
	Header http.Header
	// Rules say which headers of the events of a source are passed on, by the name of the source. One without passes
	// those that pass where nothing is known of the sender.
	Rules map[string]*passing.Rule
	// PassHeader and DropHeader choose among them: none but these, which are passed whatever the rule says, or all but
	// these. At most one of them may be given. Those that say how to read the body, Content-Type and Content-Encoding,
	// always are passed.
	PassHeader, DropHeader []string
	// AlsoPass are names, and beginnings of names that end in a star, of headers that are passed besides.
	AlsoPass []string
	// Secrets sign each delivery as Standard Webhooks describe it, with a signature per secret so that
	// they can be rotated. One that begins with whsec_ is base64 after that; others are taken byte for
	// byte. None: deliveries are not signed.
	Secrets []string
	// Signers make the provider's signatures anew, by the name of the source: for applications that verify them. The
	// headers that they need are passed on whatever PassHeader and DropHeader say.
	Signers map[string]Signer
	// TLS has the certificates and names to use for https. Nil: those of the system.
	TLS *tls.Config
	// Stale says what becomes of an event of which a newer version was delivered. Empty: [StaleFlag].
	Stale StalePolicy
	// Policy says which addresses may be connected to. The zero policy allows all.
	Policy AddressPolicy
	// Breaker keeps attempts from a destination that fails again and again. Nil means the defaults.
	Breaker *Breaker
}

// StalePolicy says what becomes of an event of which a newer version was delivered to the destination
// already. Events that were replayed by force are delivered in any case.
type StalePolicy string

// The policies about stale events.
const (
	StaleFlag    StalePolicy = "flag"    // deliver it with Hookonce-Stale: true
	StaleDeliver StalePolicy = "deliver" // deliver it like any other
	StaleDrop    StalePolicy = "drop"    // do not deliver it; it is done, and its record says why
)

// destination is a [Destination] made ready for use.
type destination struct {
	name          string
	url           *url.URL
	address       string // the same without the user and password
	authorization string // from the user and password of the address
	timeout       time.Duration
	schedule      Schedule
	giveUp        time.Duration
	permanent     []int
	header        http.Header
	rules         map[string]*passing.Rule // by the name of the source
	choice        passing.Choice
	secrets       [][]byte
	signers       map[string]Signer
	stale         StalePolicy
	transport     http.RoundTripper
}

// newDestination checks the settings. Its errors repeat no secret and no address, which may hold one.
func newDestination(name string, s Destination, transport http.RoundTripper) (*destination, error) {
	d := &destination{
		name:      name,
		timeout:   cmp.Or(s.Timeout, DefaultTimeout),
		schedule:  s.Schedule,
		giveUp:    s.GiveUp,
		permanent: s.Permanent,
		stale:     cmp.Or(s.Stale, StaleFlag),
		signers:   s.Signers,
		rules:     s.Rules,
		transport: transport,
	}
	if d.schedule == nil {
		d.schedule = DefaultSchedule()
	}
	return d, errors.Join(d.locate(s.URL), s.validate(), d.headers(s), d.keys(s.Secrets))
}

// keys reads the secrets. Errors do not repeat them.
func (d *destination) keys(secrets []string) (err error) {
	d.secrets, err = outgoing.Keys(secrets)
	return err
}

// address reads the URL.
func (d *destination) locate(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		var cause *url.Error // its text repeats the address
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return fmt.Errorf("the address cannot be read: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return errors.New("the address must begin with http:// or https:// and name a host")
	}
	if u.User != nil {
		password, _ := u.User.Password()
		d.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
		u.User = nil
	}
	d.url, d.address = u, u.String()
	return nil
}

// validate looks at what a configuration may get wrong besides texts.
func (s *Destination) validate() error {
	if s.Timeout < 0 || s.GiveUp < 0 || s.Concurrency < 0 || !(s.Rate >= 0) || s.Rate > maxRate {
		return fmt.Errorf("timeout, give-up time, concurrency and rate must not be negative, and the rate %g at most", float64(maxRate))
	}
	for _, status := range s.Permanent {
		if status < 300 || status > 599 {
			return fmt.Errorf("status %d cannot be permanent: write one between 300 and 599", status)
		}
	}
	if policies := []StalePolicy{"", StaleFlag, StaleDeliver, StaleDrop}; !slices.Contains(policies, s.Stale) {
		return fmt.Errorf("unknown policy %q about stale events: write flag, deliver or drop", s.Stale)
	}
	return nil
}
