package hookoncetest

import (
	"testing"
	"time"
)

// Option changes a default of [Sign], [Deliver] and the storms. What it says of
// deliveries in the name of a provider does not matter to [StormOf] and [ClientStorm].
type Option func(*settings)

// Defaults and limits.
const (
	DefaultCopies   = 25
	DefaultAttempts = 8
	DefaultURL      = "https://shop.example/"
)

type settings struct {
	copies   int
	attempts int
	url      string
	kind     string
	body     func(id string) []byte
	now      func() time.Time
}

func newSettings(t testing.TB, opts []Option) settings {
	t.Helper()
	s := settings{copies: DefaultCopies, attempts: DefaultAttempts, url: DefaultURL, now: time.Now}
	for _, o := range opts {
		o(&s)
	}
	switch {
	case s.copies < 2:
		t.Fatalf("hookoncetest: Copies(%d): a storm needs two copies at least", s.copies)
	case s.attempts < 1:
		t.Fatalf("hookoncetest: Attempts(%d): a sender tries once at least", s.attempts)
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
// of it to senders that sign it. Default [DefaultURL].
func URL(url string) Option { return func(s *settings) { s.url = url } }

// Type sets the type of the events. Default: the provider's usual one.
func Type(name string) Option { return func(s *settings) { s.kind = name } }

// Body sets what the events say: f returns the body of the event with that id, always the same for the
// same id. The id has to be where the provider has it, or all events would have one key. Default: the
// sample of the catalogue.
func Body(f func(id string) []byte) Option { return func(s *settings) { s.body = f } }

// Now sets the clock by which events happen and are signed. Default [time.Now].
func Now(clock func() time.Time) Option { return func(s *settings) { s.now = clock } }
