package hookonce_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// What a run of the handler, or of the store, does in the model test.
const (
	succeeds       = "succeeds"
	refuses        = "refuses"       // 402, which is kept
	overloaded     = "is overloaded" // 429, which is not
	errs           = "fails"         // in a transaction: returns an error; under a lease: answers 500
	reaches        = "fails after it reached the outside"
	panics         = "panics" // in the handler
	losesPersisted = "reports a lost save that happened"
	loses          = "loses the save"
	losesClaim     = "reports a lost claim that happened" // under a lease
)

// endpointModel is what should be known about requests with keys, in a few lines.
type endpointModel struct {
	done    map[string]doneCall  // by scope and key
	held    map[string]time.Time // until when nobody else may try
	pinned  map[string]string    // the body that may have had effects outside
	began   time.Time            // the last request
	effects int
	runs    int
}

type doneCall struct {
	body, text string
	status     int
}

// TestIdempotentModel sends requests of two callers with few keys and bodies, through handlers and stores that
// fail in every way, and holds each answer and the number of effects against the model.
func TestIdempotentModel(t *testing.T) {
	t.Run("in a transaction", func(t *testing.T) { checkModel(t, modelTx) })
	t.Run("under a lease", func(t *testing.T) { checkModel(t, modelLease) })
}

// system is what the model is about: it handles requests, and counts effects that stay. Plan is what goes
// wrong next.
type system struct {
	http.Handler
	plan          string
	plans         []string // that make sense
	runs, effects int
	atomic        bool // a failure undoes the effect, and leaves no claim
}

var plans = []string{succeeds, refuses, overloaded, errs, reaches, panics, losesPersisted, loses}

// answer does what the plan says of the handler, and returns false if it should return an error.
func (s *system) answer(w http.ResponseWriter, r *http.Request) bool {
	s.runs++
	switch s.plan {
	case refuses:
		w.WriteHeader(402)
	case overloaded:
		w.WriteHeader(429)
	case reaches:
		hookonce.PinRequest(r.Context())
		w.WriteHeader(429)
		return false
	case errs:
		w.WriteHeader(500)
		return false
	case panics:
		panic("a fault in the handler")
	default:
		w.WriteHeader(201)
	}
	fmt.Fprintf(w, "run %d", s.runs)
	return true
}

// save does what the plan says of the store.
func (s *system) save(persist func() error) error {
	switch s.plan {
	case losesPersisted:
		return errors.Join(persist(), errAway)
	case loses:
		return errAway
	}
	return persist()
}

// claim does what the plan says of the store.
func (s *system) claim(persist func() error) error {
	if s.plan == losesClaim {
		return errors.Join(persist(), errAway)
	}
	return persist()
}

func modelTx() *system {
	s := &system{atomic: true, plans: plans}
	store := memstore.New(memstore.WithCommit(func(persist func()) error {
		return s.save(func() error { persist(); return nil })
	}))
	s.Handler = counter(store, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		tx.OnCommit(func() { s.effects++ })
		if !s.answer(w, r) {
			return errors.New("the card network is away")
		}
		return nil
	})
	return s
}

func modelLease() *system {
	s := &system{plans: append([]string{losesClaim}, plans...)}
	s.Handler = desk(faulty{Store: memstore.New(), claim: s.claim, completeWith: s.save}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.effects++
		s.answer(w, r)
	}))
	return s
}

// bubbled hides the deadline of a test, which a bubble has not.
type bubbled struct{ testing.TB }

func checkModel(t *testing.T, open func() *system) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(bubbled{t}, func(t *rapid.T) {
			s, m := open(), endpointModel{done: map[string]doneCall{}, held: map[string]time.Time{}, pinned: map[string]string{}}
			t.Repeat(map[string]func(*rapid.T){
				"request": func(t *rapid.T) {
					s.plan = rapid.SampledFrom(s.plans).Draw(t, "plan")
					scope, key := rapid.SampledFrom([]string{"acme", "globex"}).Draw(t, "scope"), rapid.SampledFrom([]string{"k1", "k2"}).Draw(t, "key")
					body := rapid.SampledFrom([]string{"10", "11"}).Draw(t, "body")
					m.began = time.Now() // a save that fails is tried again for a while
					m.check(t, s, scope+"/"+key, body, buy(s, key, body, setHeader("Tenant", scope)))
				},
				"time passes": func(t *rapid.T) { time.Sleep(hookonce.DefaultLease / 2) },
			})
		})
	})
}

// check holds an answer against what is known, and learns from it what has happened.
func (m *endpointModel) check(t *rapid.T, s *system, id, body string, w *httptest.ResponseRecorder) {
	status, replayed, text := m.expect(s, id, body)
	if w.Code != status || (w.Header().Get("Idempotency-Replayed") == "true") != replayed || text != "" && w.Body.String() != text {
		t.Fatalf("%s with body %s, where it %s: answered %d %s, replayed %q; want %d %q, replayed %v",
			id, body, s.plan, w.Code, w.Body, w.Header().Get("Idempotency-Replayed"), status, text, replayed)
	}
	if s.runs != m.runs || s.effects != m.effects {
		t.Fatalf("%d runs and %d effects, want %d and %d", s.runs, s.effects, m.runs, m.effects)
	}
}

// expect returns what should be answered; an empty text is any problem's.
func (m *endpointModel) expect(s *system, id, body string) (status int, replayed bool, text string) {
	d, done := m.done[id]
	held := m.began.Before(m.held[id])
	first, pinned := m.pinned[id]
	other := pinned && first != body
	switch {
	case s.plan == losesClaim:
		if !done && !held && !other {
			m.held[id], m.pinned[id] = m.began.Add(hookonce.DefaultLease), body
		}
		return 503, false, ""
	case done && d.body != body:
		return 422, false, ""
	case done:
		return d.status, true, d.text
	case held:
		return 409, false, ""
	case other:
		return 422, false, ""
	}
	m.runs++
	if s.plan == reaches || !s.atomic && s.plan != overloaded {
		m.pinned[id] = body
	}
	stays := s.plan == succeeds || s.plan == refuses || s.plan == losesPersisted
	if stays || !s.atomic {
		m.effects++
	}
	own := fmt.Sprintf("run %d", m.runs)
	switch s.plan {
	case succeeds:
		m.done[id] = doneCall{body, own, 201}
		return 201, false, own
	case refuses:
		m.done[id] = doneCall{body, own, 402}
		return 402, false, own
	case overloaded:
		return 429, false, own
	case losesPersisted:
		m.done[id] = doneCall{body, own, 201}
	case loses:
		if !s.atomic {
			m.held[id] = m.began.Add(hookonce.DefaultLease)
		}
	case reaches:
		if !s.atomic {
			return 429, false, ""
		}
	case errs:
		if !s.atomic {
			return 500, false, ""
		}
	}
	return 503, false, ""
}
