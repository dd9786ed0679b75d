//go:build linux

package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/settings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/schema"
	"github.com/jackc/pgx/v5/stdlib"
)

// serverOrder is what a server under test is asked for.
type serverOrder struct {
	Store string        // sqlite:PATH or postgres://...
	Sink  string        // of the gateway; empty: nothing is delivered
	Idle  string        // where the first of a hundred sources deliver to; empty: there is one source
	Keep  time.Duration // of ids and bodies; negative: for ever; 0: as usual
}

// poolSize is the number of connections of every pool, ours and the hand-written ones'.
const poolSize = 24

// playServer is the process of a server under test. Everything is as a program in production has it,
// the log included: it goes to standard error, which the parent connects to /dev/null.
func playServer(kind, order string) error {
	var o serverOrder
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		return err
	}
	ctx := context.Background()
	if kind == "gateway" {
		return playGateway(ctx, o)
	}
	make := map[string]func(context.Context, serverOrder) (http.Handler, error){
		"ceiling":            ceiling,
		"hand-postgres":      handPostgres,
		"hand-sqlite":        handSQLite,
		"hand-effect":        handEffect,
		"library":            library,
		"hand-statement":     handStatement,
		"library-batch":      libraryBatch,
		"hand-idempotent":    handIdempotent,
		"library-idempotent": libraryIdempotent,
	}[kind]
	if make == nil {
		return fmt.Errorf("there is no server %q", kind)
	}
	h, err := make(ctx, o)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(l, h) }() // ends with the process
	ready("http://" + l.Addr().String() + "/in/bench")
	return nil
}

func playGateway(ctx context.Context, o serverOrder) error {
	gateway.TuneGC()
	c := config.Default()
	c.Listen, c.Admin = "127.0.0.1:0", "127.0.0.1:0"
	var err error
	if c.Store, err = config.ParseStore(o.Store); err != nil {
		return err
	}
	s := config.DefaultSource()
	s.Name, s.Provider, s.To = "bench", "standard", o.Sink
	s.Secrets = []settings.Secret{settings.Literal(benchSecret())}
	c.Sources = []config.Source{s}
	stop := 10 * time.Second
	if o.Idle != "" {
		c.Sources, stop = manySources(s, o), time.Second
	}
	if o.Keep != 0 {
		c.Retention = config.Retention{IDs: max(o.Keep, 0), Bodies: max(o.Keep, 0)}
	}
	g, err := gateway.Start(ctx, c, gateway.Options{Logger: newLogger(c.LogLevel)})
	if err != nil {
		return err
	}
	go gateway.GiveBack()
	ready("http://" + g.Addr().String() + "/in/bench")
	ctx, cancel := context.WithTimeout(ctx, stop)
	defer cancel()
	return g.Close(ctx)
}

func newLogger(level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// verified is a handler that reads and verifies, and leaves the rest to next.
func verified(next func(ctx context.Context, ev *hookonce.Event) error) http.Handler {
	p := benchProvider()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "incomplete", http.StatusBadRequest)
			return
		}
		d, err := p.Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: time.Now()})
		if err != nil {
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		if err := next(r.Context(), &d.Events[0]); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
		}
	})
}

func ceiling(context.Context, serverOrder) (http.Handler, error) {
	return verified(func(context.Context, *hookonce.Event) error { return nil }), nil
}

func openPool(ctx context.Context, o serverOrder, tables ...string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(o.Store)
	if err != nil {
		return nil, err
	}
	c.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if _, err := pool.Exec(ctx, t); err != nil {
			return nil, err
		}
	}
	return pool, nil
}

const (
	createWebhooks = `CREATE TABLE IF NOT EXISTS webhooks (
		id text PRIMARY KEY, type text NOT NULL, received_at timestamptz NOT NULL, body bytea NOT NULL)`
	createEffects = `CREATE TABLE IF NOT EXISTS payments (
		id bigserial PRIMARY KEY, event text NOT NULL, cents bigint NOT NULL)`
	createSeen = `CREATE TABLE IF NOT EXISTS seen (
		id text PRIMARY KEY, type text NOT NULL, digest bytea NOT NULL, seen_at timestamptz NOT NULL)`
	insertEffect = `INSERT INTO payments (event, cents) VALUES ($1, $2)`
)

// handPostgres is the handler that a good engineer writes: pooled connections, statements prepared by
// the driver, the unique key decided by the database, acknowledged after the commit.
func handPostgres(ctx context.Context, o serverOrder) (http.Handler, error) {
	pool, err := openPool(ctx, o, createWebhooks)
	if err != nil {
		return nil, err
	}
	return verified(func(ctx context.Context, ev *hookonce.Event) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO webhooks (id, type, received_at, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
				ev.Key, ev.Type, time.Now(), ev.Body)
			return err
		})
	}), nil
}

// handEffect claims the id and books a payment in one transaction, by hand.
func handEffect(ctx context.Context, o serverOrder) (http.Handler, error) {
	pool, err := openPool(ctx, o, createEffects, createSeen)
	if err != nil {
		return nil, err
	}
	return verified(func(ctx context.Context, ev *hookonce.Event) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `INSERT INTO seen (id, type, digest, seen_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
				ev.Key, ev.Type, ev.Digest, time.Now())
			if err != nil || tag.RowsAffected() == 0 {
				return err
			}
			_, err = tx.Exec(ctx, insertEffect, ev.Key, 4200)
			return err
		})
	}), nil
}

// handStatement is the fastest way by hand: it verifies by itself, and claims the id and books the payment in one statement.
func handStatement(ctx context.Context, o serverOrder) (http.Handler, error) {
	pool, err := openPool(ctx, o, createEffects, createSeen)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "incomplete", http.StatusBadRequest)
			return
		}
		id, at := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
		if !signed(id, at, r.Header.Get("Webhook-Signature"), body, time.Now()) {
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		var event struct{ Type string }
		if err := json.Unmarshal(body, &event); err != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		digest := sha256.Sum256(body)
		if _, err := pool.Exec(r.Context(), `WITH won AS (
				INSERT INTO seen (id, type, digest, seen_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING id
			) INSERT INTO payments (event, cents) SELECT id, $5 FROM won`, id, event.Type, digest[:16], time.Now(), 4200); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
		}
	}), nil
}

// signed reports whether the body was signed with the secret in the last five minutes.
func signed(id, at, signature string, body []byte, now time.Time) bool {
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, []byte(benchKey))
	io.WriteString(mac, id+"."+at+".")
	mac.Write(body)
	got, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
	return err == nil && hmac.Equal(got, mac.Sum(nil))
}

// openStore opens the library's store beside the table of effects.
func openStore(ctx context.Context, o serverOrder) (*pgstore.Store, error) {
	pool, err := openPool(ctx, o, createEffects)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	_, err = schema.Migrate(ctx, db, schema.Postgres, schema.DefaultName)
	return pgstore.New(pool), err
}

// library does the same through hookonce.
func library(ctx context.Context, o serverOrder) (http.Handler, error) {
	store, err := openStore(ctx, o)
	if err != nil {
		return nil, err
	}
	return hookonce.Webhook(store, "bench", benchProvider(), func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
		_, err := tx.Exec(ctx, insertEffect, ev.Key, 4200)
		return err
	}, hookonce.WithLogger(newLogger(slog.LevelInfo))), nil
}

// libraryBatch does the same in one round trip.
func libraryBatch(ctx context.Context, o serverOrder) (http.Handler, error) {
	store, err := openStore(ctx, o)
	if err != nil {
		return nil, err
	}
	return hookonce.Webhook(store.Batches(), "bench", benchProvider(), func(_ context.Context, b *pgstore.Batch, ev *hookonce.Event) error {
		b.Queue(insertEffect, ev.Key, 4200)
		return nil
	}, hookonce.WithLogger(newLogger(slog.LevelInfo))), nil
}

// handSQLite is the same handler on SQLite: one connection, because there is one writer, and a
// statement prepared once.
func handSQLite(ctx context.Context, o serverOrder) (http.Handler, error) {
	db, err := openSQLite(ctx, o.Store)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS webhooks (
		id TEXT PRIMARY KEY, type TEXT NOT NULL, received_at INTEGER NOT NULL, body BLOB NOT NULL)`); err != nil {
		return nil, err
	}
	insert, err := db.PrepareContext(ctx, `INSERT INTO webhooks (id, type, received_at, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`)
	if err != nil {
		return nil, err
	}
	return verified(func(ctx context.Context, ev *hookonce.Event) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if _, err := tx.StmtContext(ctx, insert).ExecContext(ctx, ev.Key, ev.Type, time.Now().UnixMicro(), ev.Body); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}), nil
}

// openSQLite opens a database for one connection, durable at every commit.
func openSQLite(ctx context.Context, store string, pragmas ...string) (*sql.DB, error) {
	s, err := config.ParseStore(store)
	if err != nil {
		return nil, err
	}
	q := url.Values{"_txlock": {"immediate"}, "_pragma": append(pragmas, "journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(5000)")}
	db, err := sql.Open("sqlite", "file:"+s.DSN+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, db.PingContext(ctx)
}
