package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
)

// speaker is a destination that answers each event with a text of its own, which no two of its answers
// share.
type speaker struct {
	*httptest.Server
	board
	keys []string // Idempotency-Key of each request
	// reply, if set, answers the n-th request instead.
	reply func(w http.ResponseWriter, r *http.Request, n int)
}

func newSpeaker(t *testing.T) *speaker {
	s := &speaker{board: newBoard()}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	n := len(s.keys)
	s.changed()
	s.mu.Unlock()
	if s.reply != nil {
		s.reply(w, r, n)
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	w.Header().Set("X-Answer", fmt.Sprint(n))
	w.Header().Set("Set-Cookie", "session=not-for-the-sender")
	fmt.Fprintf(w, "<Response><Say>%d</Say></Response>", n)
}

// asked returns the Idempotency-Key of each request so far.
func (s *speaker) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.keys...)
}

// heard is what a sender reads of an answer.
type heard struct {
	status                             int
	verdict, kind, answer, cookie, say string
	retry                              bool
}

// synchronous returns settings with one source in mode sync.
func synchronous(store config.Store, to string) *config.Config {
	cfg := configured(store, to)
	cfg.Sources[0].Mode = config.Sync
	return cfg
}

// ask posts a signed body and reads the whole answer.
func ask(t *testing.T, c *http.Client, g *Gateway, s config.Source, body []byte) heard {
	t.Helper()
	p, err := s.NewProvider()
	if err != nil {
		t.Fatal(err)
	}
	signed := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: body, Now: time.Now()}
	if err := p.Sign(signed); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+g.Addr().String()+"/in/"+s.Name, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = signed.Header
	res, err := c.Do(req)
	if err != nil {
		t.Error(err)
		return heard{}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return heard{res.StatusCode, res.Header.Get("Hookonce-Status"), res.Header.Get("Content-Type"), res.Header.Get("X-Answer"),
		res.Header.Get("Set-Cookie"), string(text), res.Header.Get("Retry-After") != ""}
}

// said is the n-th answer of a speaker.
func said(n int, verdict string) heard {
	return heard{status: 200, verdict: verdict, kind: "text/xml", answer: fmt.Sprint(n), say: fmt.Sprintf("<Response><Say>%d</Say></Response>", n)}
}

// The sender gets the application's answer, and so does every later copy, also after a restart.
func TestSyncAnswer(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		app := newSpeaker(t)
		cfg := synchronous(store, app.URL)
		g, c := start(t, cfg), client(t)
		if got := ask(t, c, g, cfg.Sources[0], event("a")); got != said(1, "accepted") {
			t.Errorf("first: %+v", got)
		}
		if got := ask(t, c, g, cfg.Sources[0], event("a")); got != said(1, "duplicate") {
			t.Errorf("copy: %+v", got)
		}
		closeNow(t, g)
		g = start(t, cfg)
		if got := ask(t, c, g, cfg.Sources[0], event("a")); got != said(1, "duplicate") {
			t.Errorf("copy after a restart: %+v", got)
		}
		if n := len(app.asked()); n != 1 {
			t.Errorf("the application was asked %d times", n)
		}
	})
}

// 50 copies at once: the application is asked once, and everybody gets its answer.
func TestSyncCopiesAtOnce(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		app := newSpeaker(t)
		cfg := synchronous(store, app.URL)
		syncCopies(t, cfg, app, start(t, cfg))
	})
	t.Run("three gateways", func(t *testing.T) {
		app := newSpeaker(t)
		cfg := synchronous(postgresStore(t), app.URL)
		syncCopies(t, cfg, app, start(t, cfg), start(t, cfg), start(t, cfg))
	})
}

func syncCopies(t *testing.T, cfg *config.Config, app *speaker, gateways ...*Gateway) {
	c := client(t)
	release := make(chan struct{})
	app.reply = func(w http.ResponseWriter, _ *http.Request, n int) {
		<-release // until all copies are there
		fmt.Fprintf(w, "answer %d", n)
	}
	const copies = 50
	answers := make([]heard, copies)
	var senders sync.WaitGroup
	for i := range copies {
		senders.Go(func() { answers[i] = ask(t, c, gateways[i%len(gateways)], cfg.Sources[0], event("a")) })
	}
	app.await(t, "the first copy", func() bool { return len(app.keys) > 0 })
	close(release)
	senders.Wait()
	accepted := 0
	for i, a := range answers {
		if a.verdict == "accepted" {
			accepted++
		}
		if a.status != 200 || a.say != "answer 1" {
			t.Errorf("copy %d was answered %+v", i, a)
		}
	}
	if accepted != 1 || len(app.asked()) != 1 {
		t.Errorf("%d answers said accepted and the application was asked %d times, want 1 and 1", accepted, len(app.asked()))
	}
}

// Events without a key are asked about each time, and labelled.
func TestSyncUnkeyed(t *testing.T) {
	t.Parallel()
	app := newSpeaker(t)
	cfg := synchronous(sqliteStore(t), app.URL)
	g, c := start(t, cfg), client(t)
	for n := range 2 {
		if got := ask(t, c, g, cfg.Sources[0], event("")); got != said(n+1, "unkeyed") {
			t.Errorf("time %d: %+v", n+1, got)
		}
	}
}

// A refusal of the application reaches the sender as it is, and a copy asks again; a failure that asks for
// another try is a 503.
func TestSyncRefusals(t *testing.T) {
	t.Parallel()
	for status, passed := range map[int]bool{400: true, 404: true, 410: true, 422: true, 302: true, 408: false, 425: false, 429: false, 500: false, 503: false} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			app := newSpeaker(t)
			app.reply = func(w http.ResponseWriter, _ *http.Request, n int) {
				if n == 1 {
					w.WriteHeader(status)
				}
				fmt.Fprintf(w, "answer %d", n)
			}
			cfg := synchronous(sqliteStore(t), app.URL)
			cfg.Delivery.Attempts = 1 // or the schedule would ask again by itself
			g, c := start(t, cfg), client(t)
			got := ask(t, c, g, cfg.Sources[0], event("a"))
			if passed && (got.status != status || got.say != "answer 1" || got.verdict != "accepted") {
				t.Errorf("answered %+v, want the application's answer", got)
			}
			if !passed && (got.status != 503 || !got.retry || strings.Contains(got.say, "answer 1")) {
				t.Errorf("answered %+v, want a retryable 503", got)
			}
			if got := ask(t, c, g, cfg.Sources[0], event("a")); got.status != 200 || got.say != "answer 2" || got.verdict != "duplicate" {
				t.Errorf("the copy was answered %+v", got)
			}
			if keys := app.asked(); len(keys) != 2 || keys[0] != keys[1] {
				t.Errorf("the application was asked under %q", keys)
			}
		})
	}
}

// An application that is too slow for the sender costs a 503, and its answer waits for the copy.
func TestSyncDeadline(t *testing.T) {
	onEveryStore(t, func(t *testing.T, store config.Store) {
		app := newSpeaker(t)
		slow := make(chan struct{})
		app.reply = func(w http.ResponseWriter, _ *http.Request, n int) {
			<-slow
			fmt.Fprintf(w, "answer %d", n)
		}
		cfg := synchronous(store, app.URL)
		cfg.Sources[0].Deadline = 300 * time.Millisecond
		g, c := start(t, cfg), client(t)
		end := time.Now().Add(patience)
		for try := 0; try == 0 || len(app.asked()) == 0; try++ { // again, if it was the store that was too slow
			if time.Now().After(end) {
				t.Fatalf("the application was not asked in %v", patience)
			}
			if got := ask(t, c, g, cfg.Sources[0], event("a")); got.status != 503 || !got.retry || got.verdict != "" {
				t.Fatalf("answered %+v, want a retryable 503", got)
			}
		}
		close(slow)
		deadline := time.Now().Add(patience)
		got := heard{}
		for got.status != 200 && time.Now().Before(deadline) {
			got = ask(t, c, g, cfg.Sources[0], event("a"))
		}
		if got.say != "answer 1" || got.verdict != "duplicate" || len(app.asked()) != 1 {
			t.Errorf("the copy was answered %+v, the application asked %d times", got, len(app.asked()))
		}
	})
}

// A sender that waits when its source is reloaded gets the application's answer, also if the application was not asked yet:
// whether the source has another mode now, or is gone.
func TestSyncThroughAReload(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*config.Config){
		"another mode": func(cfg *config.Config) { cfg.Sources[0].Mode = config.Async },
		"removed":      func(cfg *config.Config) { cfg.Sources = cfg.Sources[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			app := newSpeaker(t)
			release := make(chan struct{})
			app.reply = func(w http.ResponseWriter, _ *http.Request, _ int) {
				<-release
				w.Header().Set("Content-Type", "text/xml")
				_, _ = io.WriteString(w, "the answer")
			}
			cfg := unhurried(synchronous(sqliteStore(t), ""))
			to := cfg.NewDestination("ledger", app.URL)
			to.Concurrency = 1
			cfg.Destinations = []config.Destination{to}
			cfg.Sources = append(cfg.Sources, source("others", ""))
			for i := range cfg.Sources {
				cfg.Sources[i].Deadline = patience
				cfg.Sources[i].Routes = []config.Route{{To: []string{"ledger"}}}
			}
			e, c := startEdited(t, cfg), client(t)
			answers := make([]heard, 2)
			var senders sync.WaitGroup
			for i := range answers {
				senders.Go(func() { answers[i] = ask(t, c, e.Gateway, cfg.Sources[0], event(fmt.Sprint("evt_", i))) })
			}
			for deadline := time.Now().Add(patience); e.deliver.Destinations()[0].Waiting == 0; <-time.After(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("no event waits for the other one")
				}
			}
			e.edit(change)
			close(release)
			senders.Wait()
			for i, got := range answers {
				if want := (heard{status: 200, verdict: "accepted", kind: "text/xml", say: "the answer"}); got != want {
					t.Errorf("sender %d is answered %+v, want what the application answered", i, got)
				}
			}
		})
	}
}

// A destination gets another name while an event waits for it. Copies are not acknowledged, because nobody has
// the event; once the old name is back they get the answer.
func TestSyncRenamedDestination(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		app := newSpeaker(t)
		ill := true
		app.reply = func(w http.ResponseWriter, _ *http.Request, n int) {
			if app.mu.Lock(); ill {
				w.WriteHeader(http.StatusInternalServerError)
			}
			app.mu.Unlock()
			fmt.Fprintf(w, "answer %d", n)
		}
		cfg := synchronous(store, "")
		for _, step := range []struct {
			name   string
			status int
		}{{"old", 503}, {"new", 503}, {"old", 200}, {"new", 200}} {
			cfg.Sources[0].Routes = []config.Route{{To: []string{step.name}}}
			cfg.Destinations = []config.Destination{cfg.NewDestination(step.name, app.URL)}
			g, c := start(t, cfg), client(t)
			got := ask(t, c, g, cfg.Sources[0], event("a"))
			if got.status != step.status || got.retry != (step.status == 503) {
				t.Errorf("to the destination %q: %+v, want %d", step.name, got, step.status)
			}
			c.CloseIdleConnections()
			closeNow(t, g)
			app.mu.Lock()
			ill = false
			app.mu.Unlock()
		}
	})
}

// An answer that cannot be passed on whole is a failure of the attempt.
func TestSyncAnswerTooLong(t *testing.T) {
	t.Parallel()
	app := newSpeaker(t)
	app.reply = func(w http.ResponseWriter, _ *http.Request, n int) {
		_, _ = io.WriteString(w, strings.Repeat("x", 256<<10+2-n)) // the second just fits
	}
	cfg := synchronous(sqliteStore(t), app.URL)
	cfg.Delivery.Attempts = 1
	g, c := start(t, cfg), client(t)
	if got := ask(t, c, g, cfg.Sources[0], event("a")); got.status != 503 || !got.retry {
		t.Errorf("answered %d, want a retryable 503", got.status)
	}
	if got := ask(t, c, g, cfg.Sources[0], event("a")); got.status != 200 || len(got.say) != 256<<10 {
		t.Errorf("the copy was answered %d with %d bytes", got.status, len(got.say))
	}
}
