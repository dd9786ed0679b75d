package hookoncetest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// Storm sends events to the handler as p signs them, the way senders do on a bad day, and returns what came
// of it, for [Report.Once] to judge. Each event meets one of these:
//
//   - copies one after the other; [Copies] of them at one moment; as many spread over the time that one
//     takes;
//   - a sender that hangs up and sends again at once: at each step of the handler, and at several times;
//   - a request whose context is ended by the server, at each step of the handler, and at several times: what
//     it answers then counts;
//   - work that fails, in the first attempts or in all copies at once, where the fake of what the handler
//     calls asks [Fail].
//
// A step is a moment at which something looks whether the request's context has ended, as database drivers
// do before each round trip, or asks [Fail]. A handler that never looks, because it works under a context of
// its own, is not disturbed by the end of the request's. One that works under a context that was derived from
// it, by [context.WithTimeout] or in front by [http.TimeoutHandler], is disturbed, but nobody asks the request's
// again: its steps are not seen, and the times have to do. [Report.String] says how many steps were seen.
//
// The events are about several objects, three in a row about each, and all of one second: providers change an
// object more than once in a second, and each change is an event. They come in order. See [PerObject] for
// handlers that do something once for each object.
//
// Deliveries of one event differ as those of the provider do: where a time is signed, each has another one, up to a minute
// ago, and what the sample says of the attempt changes.
//
// Every event is sent until it is acknowledged with a status of 2xx; on the happy path and in a burst once more
// after that. Where p's sender takes a status of the 400s for final, as [hookonce.Profile].Rejected says, an answer
// of these, but for 408 and 429, ends the sending too: the event is lost. It does not if the storm had ended the
// request's context. Storm returns when all handlers have; what they left to goroutines of their own may be
// outstanding. The events have ids of this storm's own, so many storms may share a database.
//
// The test fails at once if nothing can be signed in p's name, if its copies cannot be recognised, and if
// the first event of all, on the happy path, is not acknowledged.
func Storm(t testing.TB, h http.Handler, p Signer, opts ...Option) *Report {
	t.Helper()
	return signer(t, h, p, opts).storm()
}

// signer returns a sender of events that p signs.
func signer(t testing.TB, h http.Handler, p Signer, opts []Option) *sender {
	t.Helper()
	s := newSender(t, h, "evt", opts)
	at, example := s.now(), p.Spec().Example
	s.numberedID = example.NumberedID
	s.provider, s.drops = p.Profile().Name, finalFor(p.Profile())
	sample := func(e *event, delivery int) spec.Sample {
		of := spec.Sample{ID: e.id, Version: int64(e.n), Attempt: int64(delivery), Time: at, Object: s.object}
		if of.Object == "" {
			n := uint64(s.seed%1e8)*1e4 + uint64((e.n-1)/s.perObject) + 1 // of this storm's own
			of.Object = cmp.Or(example.NumberedObject(n), fmt.Sprint("object_", n))
		}
		return of
	}
	s.request = func(e *event, delivery int) (*http.Request, error) {
		r, _, err := s.sign(p, sample(e, delivery))
		return r, err
	}
	s.keyOf = func(e *event) (string, error) {
		_, found, err := s.sign(p, sample(e, 1))
		if err == nil {
			err = recognisable(found)
		}
		if err != nil {
			return "", err
		}
		return found.Key, nil
	}
	return s
}

// finalFor returns which statuses are final for a sender, where its profile says that those of the 400s are; nil where it does
// not. 408 and 429 say to come again, and Rejected is none of the others there.
func finalFor(p hookonce.Profile) func(status int) bool {
	if p.Rejected < http.StatusInternalServerError && p.Rejected != http.StatusTooManyRequests {
		return nil
	}
	return func(status int) bool {
		return status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
	}
}

// recognisable returns an error if copies of ev pass for events of their own.
func recognisable(ev *hookonce.Event) error {
	switch {
	case ev.Key == "":
		return fmt.Errorf("the events of %s have no key, so each copy of one takes effect", ev.Provider)
	case ev.Coalesce:
		return fmt.Errorf("the events of %s only say that something changed, so each copy of one takes effect", ev.Provider)
	}
	return nil
}

// StormOf is [Storm] for senders that nobody can imitate, because they sign with a key that only they have,
// and for providers that are written in Go. Request returns a delivery of the event with that id, for a
// server's handler, as the handler under test accepts it. The id is what [Report.Once] asks about.
func StormOf(t testing.TB, h http.Handler, request func(id string) *http.Request, opts ...Option) *Report {
	t.Helper()
	return requests(t, h, "evt", request, opts).storm()
}

// ClientStorm is [Storm] for endpoints that take an Idempotency-Key: it sends the requests of clients that
// click twice, lose the connection and try again. Request returns the request under that key, for a
// server's handler; always the same for the same key. ClientStorm adds the header, in double quotes, if
// it is not there. The key is what [Report.Once] asks about, so the effect has to show it: let the
// handler store the header, or put the key into the body.
//
// Besides what a storm of events shows, all answers of 2xx under one key must be the same, status and body.
// As in reality clients come back after any other answer, with the same key.
func ClientStorm(t testing.TB, h http.Handler, request func(key string) *http.Request, opts ...Option) *Report {
	t.Helper()
	s := requests(t, h, "key", func(key string) *http.Request {
		r := request(key)
		if r != nil && r.Header.Get("Idempotency-Key") == "" {
			r.Header.Set("Idempotency-Key", strconv.Quote(key))
		}
		return r
	}, opts)
	s.same = true
	return s.storm()
}

// requests returns a sender of requests that the caller makes.
func requests(t testing.TB, h http.Handler, prefix string, request func(id string) *http.Request, opts []Option) *sender {
	t.Helper()
	s := newSender(t, h, prefix, opts)
	s.request = func(e *event, _ int) (*http.Request, error) {
		if r := request(e.id); r != nil {
			return r, nil
		}
		return nil, errors.New("there is no request")
	}
	s.keyOf = func(e *event) (string, error) { return e.id, nil }
	return s
}

// storm sends everything.
func (s *sender) storm() *Report {
	s.t.Helper()
	first, took := s.happyPath()
	if !first.acknowledged() {
		s.t.Fatalf("hookoncetest: not even on the happy path: %s (%s). Does the handler know the secret, is it at %s (else say where, with URL), and are its tables there?", first.story(), first.key, s.address(first))
	}
	_, again := s.happyPath()
	took = min(took, again) // the first opened connections, and either may have been held up: more would have rounds come when all is done
	s.burst(took)
	s.hangUps(took)
	s.endings(took)
	s.failures()
	return &Report{events: s.events, steps: s.steps, same: s.same, provider: s.provider}
}

// address returns where an event is posted to.
func (s *sender) address(e *event) string {
	r, err := s.request(e, 1)
	if err != nil {
		return "its address"
	}
	return r.URL.String()
}

// idOf returns the id of the nth event of the storm.
func (s *sender) idOf(n int) string {
	if s.numberedID != nil {
		if id := s.numberedID(uint64(s.seed)*1e4 + uint64(n)); id != "" {
			return id
		}
	}
	return fmt.Sprintf("%s_%08x%04d", s.prefix, s.seed, n)
}

// begin returns a new event, which meets what the format and its values say.
func (s *sender) begin(kind string, values ...any) *event {
	s.t.Helper()
	n := len(s.events) + 1
	e := &event{id: s.idOf(n), n: n, kind: kind, round: fmt.Sprintf(kind, values...)}
	var err error
	if e.key, err = s.keyOf(e); err == nil && n > 1 && e.key == s.events[0].key {
		err = errors.New("two events have the same key: put the id where the provider has it (see Body)")
	}
	if err != nil {
		s.t.Fatalf("hookoncetest: nothing can be sent: %v", err)
	}
	s.events = append(s.events, e)
	return e
}
