package gateway

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/alerting"
	"github.com/hookonce/hookonce/internal/alerting/letter"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/notify"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/tally"
)

// world is a gateway in which something is about to go wrong.
type world struct {
	*testing.T
	*Gateway
	cfg    *config.Config
	client *http.Client
	sink   *sink
	ahead  *atomic.Int64 // of the gateway's clock
}

// newWorld starts a gateway on a file, with a source "orders" that delivers to "ledger".
func newWorld(t *testing.T, edit func(*config.Config)) *world {
	w := &world{T: t, client: client(t), sink: newSink(t), ahead: new(atomic.Int64)}
	w.cfg = configured(sqliteStore(t), "")
	w.cfg.Destinations = []config.Destination{w.cfg.NewDestination("ledger", w.sink.URL)}
	w.cfg.Sources[0].Routes = []config.Route{{To: []string{"ledger"}}}
	if edit != nil {
		edit(w.cfg)
	}
	g, err := Start(t.Context(), w.cfg, Options{Now: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	w.Gateway = g
	t.Cleanup(func() { closeNow(t, g) })
	return w
}

// send posts so many new events, signed at a time that is off by so much.
func (w *world) send(prefix string, n int, want int) {
	w.Helper()
	for _, id := range ids(prefix, n) {
		w.post(w.cfg.Sources[0], event(id), 0, want)
	}
}

func (w *world) post(s config.Source, body []byte, off time.Duration, want int) {
	w.Helper()
	p, err := s.NewProvider()
	if err != nil {
		w.Fatal(err)
	}
	r := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: body, Now: w.opt.Now().Add(off)}
	if err := p.Sign(r); err != nil {
		w.Fatal(err)
	}
	got, err := patiently(func() (reply, error) { return postSigned(w.client, w.Gateway, s.Name, r.Header, body) })
	if err != nil || got.status != want {
		w.Fatalf("%d (%v), want %d", got.status, err, want)
	}
}

// look moves the clock beyond what is cached, and returns what page one says.
func (w *world) look() (o api.Overview) {
	w.Helper()
	w.ahead.Add(int64(11 * time.Second))
	res, body := get(w.T, w.client, w.Gateway, "/api/v1/overview")
	if res.StatusCode != http.StatusOK {
		w.Fatalf("%d %s", res.StatusCode, body)
	}
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		w.Fatal(err)
	}
	return o
}

// recorded waits until what was delivered is on record.
func (w *world) recorded() {
	w.Helper()
	for deadline := time.Now().Add(patience); ; {
		if o := w.look(); len(o.Destinations) > 0 && o.Destinations[0].Backlog == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.Fatal("what was delivered is not on record")
		}
	}
}

// settles waits until page one begins with an alert of the rule, and checks its words and its first action.
func (w *world) settles(rule, words, action string) api.Overview {
	w.Helper()
	var o api.Overview
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		o = w.look()
		if len(o.Verdict.Alerts) > 0 && o.Verdict.Alerts[0].Rule == rule && strings.Contains(o.Verdict.Headline, words) {
			break
		}
	}
	if len(o.Verdict.Alerts) == 0 {
		w.Fatalf("there is no alert, but %q", o.Verdict.Headline)
	}
	first := o.Verdict.Alerts[0]
	text, next := o.Verdict.Headline, fmt.Sprint(first.Action)
	if first.Rule != rule || !strings.Contains(text, words) || !strings.Contains(next, action) {
		w.Fatalf("it says\n%s (%s)\n%s\nwant %s: %q and %q; all: %+v", text, first.Rule, next, rule, words, action, o.Verdict.Alerts)
	}
	w.told(first)
	return o
}

// told checks what people would be told of an alert: a title that a pager shows, with where it is, the cause as page one has it,
// and each next step.
func (w *world) told(a alert.Alert) {
	w.Helper()
	n := alerting.Notification{
		Key: a.Fingerprint() + "#1", Fingerprint: a.Fingerprint(), Transition: 1, Rule: a.Rule, Subject: a.Subject, Severity: a.Severity, State: alerting.Firing,
		Headline: a.Headline, At: w.opt.Now(), Fired: w.opt.Now(), Since: a.Since, Count: a.Count, Sample: a.Sample, Action: a.Action, Gateway: "web-1",
	}
	m := letter.Write(alerting.Message{Key: "one", Rule: a.Rule, Notifications: []alerting.Notification{n}}, "https://hooks.internal")
	if len(m.Title) > notify.MaxTitle || !strings.Contains(m.Title, a.Subject) {
		w.Errorf("the title is %q", m.Title)
	}
	for _, part := range []string{a.Headline, a.Action.Label, a.Action.Command, a.Action.Place, "https://hooks.internal/alerts?alert=" + a.Rule} {
		if !strings.Contains(m.Text, part) {
			w.Errorf("people are told\n%s\nwithout %q", m.Text, part)
		}
	}
}

// history writes what was counted in the past into the store.
func (w *world) history(points ...tally.Point) {
	w.Helper()
	if err := w.store.AddTallies(context.Background(), "the past", 1, points); err != nil {
		w.Fatal(err)
	}
}

// In each world one thing is wrong: page one names the cause, and the next step.
func TestWorlds(t *testing.T) {
	t.Parallel()
	destination := func(url string) func(*config.Config) {
		return func(c *config.Config) {
			c.Destinations[0].URL = url
			c.Destinations[0].BreakerFailures = 1
		}
	}
	for name, test := range map[string]func(*testing.T){
		"nothing is wrong": func(t *testing.T) {
			w := newWorld(t, nil)
			w.send("e", 3, 200)
			w.sink.awaitIDs(t, ids("e", 3))
			o := w.look()
			if !o.Verdict.Healthy || len(o.Verdict.Alerts) != 0 || !strings.HasPrefix(o.Verdict.Headline, "Everything is well") {
				t.Errorf("it says %+v", o.Verdict)
			}
			if o.Verdict.Refused.Yes || o.Verdict.Lost.Yes || o.Verdict.Doubled.Yes {
				t.Errorf("it answers %+v", o.Verdict)
			}
		},
		"the destination answers 500": func(t *testing.T) {
			w := newWorld(t, func(c *config.Config) { c.Destinations[0].BreakerFailures = 1 })
			w.sink.answer = func(string, int) int { return 500 }
			w.send("e", 30, 200)
			w.settles("destination_failing", "500", "--destination ledger --state failed")
		},
		"the name of the destination is gone": func(t *testing.T) {
			w := newWorld(t, destination("http://ledger.invalid/"))
			w.send("e", 30, 200)
			w.settles("destination_failing", "cannot be found by its name", "ledger.invalid")
		},
		"the secret was changed": func(t *testing.T) {
			w := newWorld(t, nil)
			rotated := w.cfg.Sources[0]
			rotated.Secrets = []settings.Secret{settings.Literal("another-secret-of-orders")}
			for _, id := range ids("e", 25) {
				w.post(rotated, event(id), 0, 401)
			}
			w.settles("secret_rotated", "signature_mismatch", "sources.orders.secrets")
		},
		"the same events come again": func(t *testing.T) {
			w := newWorld(t, nil)
			w.send("e", 30, 200)
			w.sink.awaitIDs(t, ids("e", 30))
			w.send("e", 30, 200)
			for range 3 {
				w.look()
				w.ahead.Add(int64(time.Minute))
			}
			w.settles("came_again", "orders sends events again: 30 of 60", "--seen duplicate")
		},
		"other content under the same key": func(t *testing.T) {
			w := newWorld(t, nil)
			w.send("e", 1, 200)
			w.post(w.cfg.Sources[0], []byte(`{"id":"e-0","type":"order.refunded"}`), 0, 200)
			w.settles("conflict", "other content under a key", "--seen conflict")
		},
		"the destination hangs": func(t *testing.T) {
			release := make(chan struct{})
			w := newWorld(t, func(c *config.Config) {
				c.Destinations[0].BreakerFailures, c.Destinations[0].Timeout = 1, 50*time.Millisecond
			})
			t.Cleanup(func() { close(release) })
			w.sink.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })
			w.send("e", 30, 200)
			w.settles("destination_failing", "ledger hangs", "--state failed")
		},
		"the clock is off": func(t *testing.T) {
			w := newWorld(t, func(c *config.Config) {
				c.Sources[0].Provider, c.Sources[0].Secrets = "stripe", []settings.Secret{settings.Literal("whsec_of-orders")}
			})
			for _, id := range ids("e", 25) {
				w.post(w.cfg.Sources[0], fmt.Appendf(nil, `{"id":%q,"type":"a","object":"event"}`, id), -10*time.Minute, 401)
			}
			w.settles("clock_off", "is ahead of that of orders", "timedatectl")
		},
		"the source is silent": func(t *testing.T) {
			w := newWorld(t, nil)
			var past []tally.Point
			hour := w.opt.Now().UTC().Truncate(time.Hour)
			for at := hour.Add(-10 * 24 * time.Hour); at.Before(hour.Add(-time.Hour)); at = at.Add(time.Hour) {
				past = append(past, tally.Point{Minute: at, Source: "orders", What: tally.Verified, N: 600},
					tally.Point{Minute: at, Source: "orders", What: tally.Active, N: 55})
			}
			w.history(past...)
			w.settles("silent_source", "orders is silent since", "/in/orders")
		},
		"one type of event is given up": func(t *testing.T) {
			w := newWorld(t, func(c *config.Config) { c.Destinations[0].Permanent = []int{422} })
			w.sink.answer = func(id string, _ int) int {
				if strings.HasPrefix(id, "bad") {
					return 422
				}
				return 200
			}
			w.send("e", 5, 200)
			for _, id := range ids("bad", 3) {
				w.post(w.cfg.Sources[0], fmt.Appendf(nil, `{"id":%q,"type":"order.refunded"}`, id), 0, 200)
			}
			w.settles("type_fails", "all of type order.refunded", "--error status --status 422")
		},
		"the cleanup does not come to an end": func(t *testing.T) {
			w := newWorld(t, nil)
			w.send("e", 1, 200)
			w.sink.awaitIDs(t, ids("e", 1))
			w.recorded() // or there would be nothing to clean up: what is open stays
			db, err := sql.Open("sqlite", w.cfg.Store.DSN)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), `PRAGMA busy_timeout = 10000; CREATE TRIGGER stall BEFORE DELETE ON hookonce_events BEGIN SELECT RAISE(ABORT, 'it stalls'); END`); err != nil {
				t.Fatal(err)
			}
			w.ahead.Add(int64(91 * 24 * time.Hour)) // the event is past its retention
			w.settles("cleanup_late", "cleanup has not come to an end", "hookonce doctor")
		},
		"a resource holds up its group, on a destination that takes others": func(t *testing.T) {
			w := newWorld(t, func(c *config.Config) {
				c.Sources = []config.Source{versioned("orders")}
				c.Sources[0].Routes = []config.Route{{To: []string{"ledger"}}}
				c.Destinations[0].Order = config.ByResource
				c.Destinations[0].Backoff, c.Destinations[0].BackoffMax = time.Hour, time.Hour
			})
			w.sink.answer = func(id string, _ int) int {
				if id == "poison" {
					return 500
				}
				return 200
			}
			send := func(id, object string) {
				w.post(w.cfg.Sources[0], state{ID: id, Type: "paid", Object: object}.body(t), 0, 200)
			}
			send("poison", "invoice-1")
			w.sink.awaitIDs(t, []string{"poison"})
			for _, id := range ids("later", 3) {
				send(id, "invoice-1")
				send("other-"+id, id)
			}
			w.settles("group_blocked", "3 later ones of it wait", "hookonce events show")
		},
		"the store is read-only": func(t *testing.T) {
			w := newWorld(t, func(c *config.Config) { c.Store = postgresStore(t) })
			w.send("e", 1, 200)
			w.sink.awaitIDs(t, ids("e", 1))
			w.recorded() // before nothing can be
			w.sql("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$",
				"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
			o := w.settles("store_unwritable", "read-only", "hookonce doctor")
			if !o.Verdict.Refused.Yes {
				t.Errorf("senders are %+v", o.Verdict.Refused)
			}
		},
		"the store is slow": func(t *testing.T) {
			w := newWorld(t, func(c *config.Config) {
				c.Store = postgresStore(t)
				c.Alerts.Enabled = false // whoever looks last is told of the commits since then; nobody else is to look
			})
			w.sql("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END'",
				"CREATE TRIGGER slow AFTER INSERT ON hookonce.events FOR EACH STATEMENT EXECUTE FUNCTION slow()")
			w.send("e", 6, 200)
			w.settles("store_slow", "The store is slow", "hookonce doctor")
		},
		"a pause, and a destination that fails": func(t *testing.T) {
			w := newWorld(t, func(c *config.Config) {
				c.Destinations = append(c.Destinations, c.NewDestination("mail", "http://mail.invalid/"))
				c.Destinations[1].BreakerFailures = 1
				c.Sources[0].Routes[0].To = []string{"ledger", "mail"}
			})
			w.pause("ledger")
			w.send("e", 30, 200)
			o := w.settles("destination_failing", "mail cannot be found by its name", "mail.invalid")
			w.ahead.Add(int64(25 * time.Hour))
			o = w.settles("destination_failing", "more below", "mail.invalid")
			var rules []string
			for _, a := range o.Verdict.Alerts {
				rules = append(rules, a.Rule+"/"+a.Subject+" "+a.Cause)
			}
			text := strings.Join(rules, ", ")
			for _, want := range []string{"paused/ledger ,", "backlog_old/ledger paused/ledger", "backlog_old/mail destination_failing/mail"} {
				if !strings.Contains(text, want) {
					t.Errorf("there is no %q in %s", want, text)
				}
			}
		},
		"a pause is forgotten": func(t *testing.T) {
			w := newWorld(t, nil)
			w.pause("ledger")
			w.send("e", 2, 200)
			w.ahead.Add(int64(25 * time.Hour))
			o := w.settles("paused", "ledger is paused", "/destinations/ledger/resume")
			for _, a := range o.Verdict.Alerts {
				if a.Rule == "backlog_old" && a.Cause != "paused/ledger" {
					t.Errorf("its backlog has the cause %q", a.Cause)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func (w *world) pause(name string) {
	w.Helper()
	res, err := w.client.Post("http://"+w.AdminAddr().String()+"/api/v1/destinations/"+name+"/pause", "application/json", strings.NewReader(`{"reason":"the ledger moves"}`))
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		w.Fatal(res.Status)
	}
}

// sql does something to the database of the store.
func (w *world) sql(statements ...string) {
	w.Helper()
	db, err := pgx.Connect(w.Context(), w.cfg.Store.DSN)
	if err != nil {
		w.Fatal(err)
	}
	defer db.Close(context.Background())
	for _, s := range statements {
		if _, err := db.Exec(w.Context(), s); err != nil {
			w.Fatal(s, err)
		}
	}
}
