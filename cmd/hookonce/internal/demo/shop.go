package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
)

// slowShop is how long the shop takes when it is slow: twice as long as the gateway waits.
const slowShop = 1200 * time.Millisecond

// shop books orders into a ledger, and has its bad moments.
type shop struct {
	*stage
	url    string
	sales  map[string]*sale // by event id
	server *http.Server
	busy   atomic.Int64 // requests under way
}

// openShop starts the shop on a free port, with the careful handler or the naive one.
func openShop(ctx context.Context, s *stage, naive bool, chapters []*chapter) (*shop, error) {
	sh := &shop{stage: s, sales: map[string]*sale{}}
	for _, c := range chapters {
		for _, event := range c.events {
			sh.sales[event.id] = event
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	handler := sh.careful()
	if naive {
		handler = sh.naive()
	}
	sh.url = "http://" + l.Addr().String() + "/webhooks"
	sh.server = &http.Server{Handler: sh.troubled(handler), ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = sh.server.Serve(l) }() // ends with close
	return sh, nil
}

func (sh *shop) close(ctx context.Context) error { return sh.server.Shutdown(ctx) }

// careful is a handler as the documentation shows it: the entry commits with the claim.
func (sh *shop) careful() http.Handler {
	return hookonce.Webhook(sh.store(), "shop", provider.Standard(demoSecret),
		func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
			if err := sh.book(ctx, tx, ev.Key, ev.Body); err != nil {
				return err
			}
			return sh.trouble(ev.Key) // the entry made above is rolled back with the claim
		},
		hookonce.WithLogger(slog.New(slog.DiscardHandler)))
}

// naive is the handler that everybody writes first. It even remembers the id before it acts, so that
// a retry cannot act twice.
func (sh *shop) naive() http.Handler {
	p := provider.Standard(demoSecret)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "incomplete", http.StatusBadRequest)
			return
		}
		d, err := p.Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: time.Now()})
		if err != nil {
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		if err := sh.checkThenInsert(context.WithoutCancel(r.Context()), d.Events[0].Key, body); err != nil {
			http.Error(w, "failed", http.StatusInternalServerError)
		}
	})
}

func (sh *shop) checkThenInsert(ctx context.Context, id string, body []byte) error {
	var n int
	if err := sh.db.QueryRowContext(ctx, sh.sql("SELECT count(*) FROM {seen} WHERE event = @1"), id).Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		return nil // seen before: a duplicate
	}
	if _, err := sh.db.ExecContext(ctx, sh.sql("INSERT INTO {seen} VALUES (@1) ON CONFLICT DO NOTHING"), id); err != nil {
		return err
	}
	if err := sh.trouble(id); err != nil {
		return err
	}
	return sh.book(ctx, sh.db, id, body)
}

// book enters the order into the ledger.
func (sh *shop) book(ctx context.Context, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, id string, body []byte) error {
	var event struct {
		Data struct {
			Cents int64 `json:"amount_cents"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return hookonce.Permanent(err)
	}
	_, err := db.ExecContext(ctx, sh.sql("INSERT INTO {ledger} (event, cents) VALUES (@1, @2)"), id, event.Data.Cents)
	return err
}

// sql puts the names of the tables and the database's form of parameters into a statement.
func (sh *shop) sql(text string) string { return sh.stage.sql(text) }

func (s *stage) sql(text string) string {
	return strings.NewReplacer("{ledger}", s.ledger, "{seen}", s.seen, "@", s.param).Replace(text)
}

// trouble strikes while an event is handled.
func (sh *shop) trouble(id string) error {
	s, ok := sh.sales[id]
	if ok && s.shop.kind == fails && s.visits.Load() <= s.shop.times {
		return errors.New("the shop has a bad moment")
	}
	return nil
}

// troubled strikes before and after: a stall, an error, or a connection that drops in place of the
// answer.
func (sh *shop) troubled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sh.busy.Add(1)
		defer sh.busy.Add(-1)
		s, ok := sh.sales[r.Header.Get("Webhook-Id")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fault := s.shop.kind
		if s.visits.Add(1) > s.shop.times {
			fault = healthy
		}
		switch fault {
		case healthy:
			next.ServeHTTP(w, r)
		case slow:
			_ = pause(context.WithoutCancel(r.Context()), slowShop)
			next.ServeHTTP(w, r)
		case fails:
			next.ServeHTTP(discard{http.Header{}}, r)
			w.WriteHeader(http.StatusInternalServerError)
		case dropsReply:
			next.ServeHTTP(discard{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		}
	})
}

// discard is an answer that nobody gets.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// count compares the ledger with what the provider sold. Events that are late are not lost.
func (d *demo) count(ctx context.Context, late map[string]bool, chapters ...*chapter) (tally, error) {
	entries, cents, err := d.entries(ctx)
	if err != nil {
		return tally{}, err
	}
	var t tally
	for _, c := range chapters {
		t.sent += int(c.sent.Load())
		for _, s := range c.events {
			n := entries[s.id]
			t.events++
			t.visits += int(s.visits.Load())
			t.effects += n
			t.sold += s.cents
			t.booked += cents[s.id]
			switch {
			case n == 0 && late[s.id]:
				t.late++
			case n == 0:
				t.lost++
			case n > 1:
				t.doubled++
			}
		}
	}
	return t, nil
}

// entries reads the ledger: entries and cents by event.
func (s *stage) entries(ctx context.Context) (entries map[string]int, cents map[string]int64, err error) {
	rows, err := s.db.QueryContext(ctx, s.sql("SELECT event, count(*), CAST(sum(cents) AS bigint) FROM {ledger} GROUP BY event"))
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	entries, cents = map[string]int{}, map[string]int64{}
	for rows.Next() {
		var id string
		var n int
		var sum int64
		if err := rows.Scan(&id, &n, &sum); err != nil {
			return nil, nil, err
		}
		entries[id], cents[id] = n, sum
	}
	return entries, cents, rows.Err()
}
