package hookoncetest_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/memstore"
)

var quiet = hookonce.WithLogger(slog.New(slog.DiscardHandler))

func now() time.Time { return time.Now() }

// naive are handlers that people write, each with what its test must say.
var naive = []struct {
	name   string
	handle func(s shop) func(ctx context.Context, event string) error
	sent   func(s shop) func(ctx context.Context, event, body, signature string) error // in place of handle
	want   []string

	wantNot []string
}{
	{
		name: "without memory",
		handle: func(s shop) func(context.Context, string) error {
			return func(ctx context.Context, event string) error { return book(ctx, s, event) }
		},
		want: []string{"happened 2 times: copies one after the other: answered 200 (2 times)", "happened 26 times: 25 copies at one moment"},
	},
	{
		name: "check, then insert",
		handle: func(s shop) func(context.Context, string) error {
			return func(ctx context.Context, event string) error {
				if seen, err := s.seen(ctx, event); seen || err != nil {
					return err
				}
				tx, err := s.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer tx.Rollback()
				if _, err := remember(ctx, tx, event); err != nil {
					return err
				}
				if err := book(ctx, tx, event); err != nil {
					return err
				}
				return tx.Commit()
			}
		},
		want: []string{"25 copies at one moment"},
	},
	{
		name: "claim, then effect",
		handle: func(s shop) func(context.Context, string) error {
			return func(ctx context.Context, event string) error {
				if first, err := remember(ctx, s, event); !first || err != nil {
					return err
				}
				return book(ctx, s, event)
			}
		},
		want: []string{
			"was acknowledged and never happened: the sender hangs up at step",
			"was acknowledged and never happened: the request's context ends at step",
			"was acknowledged and never happened: the work fails twice: answered 500",
		},
	},
	{
		name: "effect, then claim",
		handle: func(s shop) func(context.Context, string) error {
			return func(ctx context.Context, event string) error {
				if seen, err := s.seen(ctx, event); seen || err != nil {
					return err
				}
				if err := book(ctx, s, event); err != nil {
					return err
				}
				_, err := remember(ctx, s, event)
				return err
			}
		},
		want: []string{"happened 2 times: the request's context ends at step"},
	},
	{
		name: "claim, then effect, under a deadline of its own",
		handle: func(s shop) func(context.Context, string) error {
			return underDeadline(func(ctx context.Context, event string) error {
				if first, err := remember(ctx, s, event); !first || err != nil {
					return err
				}
				return s.bookSlowly(ctx, event)
			})
		},
		want: []string{
			"was acknowledged and never happened: the sender hangs up after",
			"was acknowledged and never happened: the request's context ends after",
		},
	},
	{
		name: "effect, then claim, under a deadline of its own",
		handle: func(s shop) func(context.Context, string) error {
			return underDeadline(func(ctx context.Context, event string) error {
				if seen, err := s.seen(ctx, event); seen || err != nil {
					return err
				}
				if err := s.bookSlowly(ctx, event); err != nil {
					return err
				}
				_, err := remember(ctx, s, event)
				return err
			})
		},
		want: []string{"happened 2 times: the request's context ends after"},
	},
	{
		name: "200 for everything",
		handle: func(s shop) func(context.Context, string) error {
			return func(ctx context.Context, event string) error {
				_ = s.once(ctx, event)
				return nil
			}
		},
		want: []string{"was acknowledged and never happened: the work fails twice: answered 200"},
	},
	{
		name: "never 200",
		handle: func(s shop) func(context.Context, string) error {
			return func(ctx context.Context, event string) error {
				s.once(ctx, event)
				return context.Canceled
			}
		},
		want: []string{"not even on the happy path: answered 500 (9 times)"},
	},
	{
		name: "200 for what is under way",
		handle: func(s shop) func(context.Context, string) error {
			var underWay sync.Map
			return func(ctx context.Context, event string) error {
				if _, busy := underWay.LoadOrStore(event, true); busy {
					return nil // somebody is at it
				}
				defer underWay.Delete(event)
				return s.once(ctx, event)
			}
		},
		want: []string{"was acknowledged and never happened: the work fails for 25 copies at one moment"},
	},
	{
		name: "200 when the context has ended",
		handle: func(s shop) func(context.Context, string) error {
			return func(ctx context.Context, event string) error {
				if err := s.once(ctx, event); !errors.Is(err, context.Canceled) {
					return err
				}
				return nil // nobody reads it anyway
			}
		},
		want:    []string{"was acknowledged and never happened: the request's context ends at step"},
		wantNot: []string{"hangs up"}, // nobody reads it indeed
	},
	{
		name: "an error for copies",
		handle: func(s shop) func(context.Context, string) error {
			return func(ctx context.Context, event string) error {
				if _, err := s.ExecContext(ctx, "INSERT INTO seen VALUES (?)", event); err != nil {
					return err // the unique key; also the retry after a lost acknowledgement
				}
				return book(context.WithoutCancel(ctx), s, event)
			}
		},
		want: []string{"happened, but was never acknowledged", "never happened, and was never acknowledged"},
	},
	{
		name: "keyed by a hash of the body",
		sent: func(s shop) func(context.Context, string, string, string) error {
			return func(ctx context.Context, event, body, _ string) error {
				return s.onceAs(ctx, fmt.Sprintf("%x", sha256.Sum256([]byte(body))), event)
			}
		},
		want: []string{"happened 2 times: copies one after the other: answered 200 (2 times)", "happened 3 times: 25 copies at one moment"},
	},
	{
		name: "keyed by the signature",
		sent: func(s shop) func(context.Context, string, string, string) error {
			return func(ctx context.Context, event, _, signature string) error { return s.onceAs(ctx, signature, event) }
		},
		want: []string{"happened 2 times: copies one after the other: answered 200 (2 times)", "happened 26 times: 25 copies at one moment"},
	},
}

// underDeadline gives handle a context that is derived from the request's, as many do who call something.
func underDeadline(handle func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, event string) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return handle(ctx, event)
	}
}

// bookSlowly is the effect between two calls of something that takes a few milliseconds, and asks nobody for a failure.
func (s shop) bookSlowly(ctx context.Context, event string) error {
	call := func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
			return nil
		}
	}
	if err := call(); err != nil {
		return err
	}
	if _, err := s.ExecContext(ctx, "INSERT INTO orders VALUES (?)", event); err != nil {
		return err
	}
	return call()
}

// once is what a careful person writes.
func (s shop) once(ctx context.Context, event string) error { return s.onceAs(ctx, event, event) }

// onceAs does what once does, and remembers the event under that key.
func (s shop) onceAs(ctx context.Context, key, event string) error {
	tx, err := s.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if first, err := remember(ctx, tx, key); !first || err != nil {
		return err
	}
	if err := book(ctx, tx, event); err != nil {
		return err
	}
	return tx.Commit()
}

func TestStormCatchesNaiveHandlers(t *testing.T) {
	testskip.Race(t)
	for _, tt := range naive {
		t.Run(tt.name, func(t *testing.T) {
			s, at := openShop(t), now()
			began := hookoncetest.Now(func() time.Time { return at }) // or a second that passes makes two signatures of one
			got := watch(t, func(tb testing.TB) {
				var handler http.Handler
				if tt.sent != nil {
					handler = endpointOf(tt.sent(s))
				} else {
					handler = endpoint(tt.handle(s))
				}
				storm := hookoncetest.Storm(tb, handler, stripe, began)
				storm.Once(tb, s.count(t))
			})
			t.Log(got)
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("the test does not say %q", want)
				}
			}
			for _, not := range tt.wantNot {
				if strings.Contains(got, not) {
					t.Errorf("the test says %q", not)
				}
			}
		})
	}
}

func TestStormPassesCarefulHandlers(t *testing.T) {
	careful := []struct {
		name    string
		handler func(*testing.T, shop) http.Handler
	}{
		{"by hand", func(_ *testing.T, s shop) http.Handler { return endpoint(s.once) }},
		{"hookonce, SQLite", func(t *testing.T, s shop) http.Handler {
			return hookonce.Webhook(shopStore(t, s), "stripe", stripe, func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
				return book(ctx, tx, ev.Key)
			}, quiet)
		}},
		{"hookonce, memory", func(_ *testing.T, s shop) http.Handler {
			return hookonce.Webhook(memstore.New(), "stripe", stripe, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
				if err := hookoncetest.Fail(ctx); err != nil {
					return err
				}
				tx.OnCommit(func() { book(context.Background(), s, ev.Key) })
				return nil
			}, quiet)
		}},
	}
	for _, tt := range careful {
		t.Run(tt.name, func(t *testing.T) {
			s := openShop(t)
			storm := hookoncetest.Storm(t, tt.handler(t, s), stripe)
			storm.Once(t, s.count(t))
			t.Log(storm)
		})
	}
}

func TestReportSaysHowManyStepsWereSeen(t *testing.T) {
	storm := hookoncetest.StormOf(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for range 3 {
			_ = r.Context().Err()
		}
	}), func(string) *http.Request { return httptest.NewRequest(http.MethodPost, "/", nil) }, hookoncetest.Copies(2))
	if !strings.Contains(storm.String(), " deliveries, 3 steps of the handler: ") {
		t.Error(storm)
	}
}
