package hookoncetest

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// Option changes a default of [Sign], [Deliver] and the storms. Options for
// deliveries in the name of a provider do not matter to [StormOf] and [ClientStorm].
type Option func(*settings)

// Defaults and limits.
const (
	DefaultCopies   = 25
	DefaultAttempts = 8
	DefaultURL      = "https://shop.example/webhooks/" // and the provider's name: stripe

	DefaultPerObject = 3
)

type settings struct {
	copies    int
	attempts  int
	perObject int
	url       string
	kind      string
	object    string
	body      func(spec.Sample) []byte
	now       func() time.Time
	moments   *moments
}

func newSettings(t testing.TB, opts []Option) settings {
	t.Helper()
	s := settings{copies: DefaultCopies, attempts: DefaultAttempts, perObject: DefaultPerObject, now: time.Now, moments: &moments{taken: map[moment]bool{}}}
	for _, o := range opts {
		o(&s)
	}
	switch {
	case s.copies < 2:
		t.Fatalf("hookoncetest: Copies(%d): a storm needs two copies at least", s.copies)
	case s.attempts < 1:
		t.Fatalf("hookoncetest: Attempts(%d): a sender tries once at least", s.attempts)
	case s.perObject < 1:
		t.Fatalf("hookoncetest: PerObject(%d): one event at least is about each object", s.perObject)
	case s.now == nil:
		t.Fatalf("hookoncetest: Now(nil): there is no such clock")
	}
	return s
}

// Copies sets how many copies of an event come at once, two at least. Default [DefaultCopies].
func Copies(n int) Option { return func(s *settings) { s.copies = n } }

// Attempts sets how often an event is sent again that is not acknowledged. Every one of them waits for the
// former ones to end. Default [DefaultAttempts].
func Attempts(n int) Option { return func(s *settings) { s.attempts = n } }

// URL sets the address that is posted to, absolute. The path matters where the handler is a mux, and all
// of it to senders that sign it. Default: [DefaultURL] and the provider's name, so that a mux whose endpoint is
// /webhooks/stripe needs nothing.
func URL(url string) Option { return func(s *settings) { s.url = url } }

// Type sets the type of the events. Default: the provider's usual one.
func Type(name string) Option { return func(s *settings) { s.kind = name } }

// Object sets what the events are about, as the provider names it. Default: for [Sign] and [Deliver] the object
// of the catalogue's sample, for storms see [PerObject].
func Object(name string) Option { return func(s *settings) { s.object = name } }

// PerObject sets how many events of a storm, one after the other, are about one object, one at least. A
// handler that does something once for each object, whatever the events say, needs 1: it leaves out the others
// rightly, and for the storm they are lost. Default [DefaultPerObject].
func PerObject(n int) Option { return func(s *settings) { s.perObject = n } }

// Body sets what the events say: f returns the body of the event with that ID, type, object, version and time,
// always the same for the same one, but for what the provider says of the attempt. The ID has to be where the
// provider has it, or all events would have one key; object, version and time matter to handlers that go by them.
// Default: the sample of the catalogue.
func Body(f func(of spec.Sample) []byte) Option { return func(s *settings) { s.body = f } }

// Now sets the clock by which events happen and are signed. Default [time.Now].
func Now(clock func() time.Time) Option { return func(s *settings) { s.now = clock } }
