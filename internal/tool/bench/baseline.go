//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce/internal/traffic"
	"github.com/hookonce/hookonce/schema"
)

// baselineOrder is what a baseline is asked for.
type baselineOrder struct {
	Store    string
	Warmup   time.Duration
	Duration time.Duration
	Seed     uint64
}

// baselineResult is how many events it stored.
type baselineResult struct {
	Events  uint64  `json:"events"` // in the measured time
	Total   uint64  `json:"total"`
	Seconds float64 `json:"seconds"`
}

// baselineBatch is the number of events in one transaction: so many that more would gain nothing.
const baselineBatch = 512

// The tables of the journal, where schema.Migrate puts them.
const (
	sqlitePrefix   = schema.DefaultName + "_"
	postgresPrefix = schema.DefaultName + "."
)

// header is about what the gateway keeps of the generator's requests.
const header = "Content-Type: application/json\r\nUser-Agent: bench\r\nWebhook-Id: evt_0123456789abcdef\r\n" +
	"Webhook-Signature: v1,0123456789012345678901234567890123456789012=\r\nWebhook-Timestamp: 1790000000\r\n"

// batch is a number of new events as columns.
type batch struct {
	ids     []int64
	keys    []string
	digests [][]byte
	body    []byte
}

// writer stores one batch, durably.
type writer func(b *batch) error

// playBaseline stores batches one after the other until the time is over: the rows that the gateway
// stores for an accepted event, written by a program that does nothing else. open returns the writers
// that work side by side.
func playBaseline(order string, open func(context.Context, baselineOrder) ([]writer, error)) error {
	var o baselineOrder
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		return err
	}
	writers, err := open(context.Background(), o)
	if err != nil {
		return err
	}
	first := time.Now().Add(o.Warmup)
	last := first.Add(o.Duration)
	results := make([]baselineResult, len(writers))
	var g errgroup.Group
	for i, w := range writers {
		g.Go(func() (err error) {
			results[i], err = fill(w, i, o.Seed+uint64(i), first, last)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	all := baselineResult{Seconds: o.Duration.Seconds()}
	for _, r := range results {
		all.Events += r.Events
		all.Total += r.Total
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

func fill(w writer, number int, seed uint64, first, last time.Time) (r baselineResult, err error) {
	b := &batch{ids: make([]int64, baselineBatch), keys: make([]string, baselineBatch), digests: make([][]byte, baselineBatch), body: payload()}
	digest := sha256.Sum256(b.body)
	id := time.Now().UnixMilli()<<22 | int64(number)<<21 // room for two million events of each writer
	for now := time.Now(); now.Before(last); {
		for i := range baselineBatch {
			b.ids[i], b.keys[i], b.digests[i] = id, traffic.EventID(seed, int(r.Total)+i), digest[:16]
			id++
		}
		if err := w(b); err != nil {
			return r, err
		}
		now = time.Now()
		r.Total += baselineBatch
		if now.After(first) && now.Before(last) {
			r.Events += baselineBatch
		}
	}
	return r, nil
}

// baselineSQLite writes through the driver itself: database/sql around it would cost as much as SQLite
// for statements this small.
func baselineSQLite(ctx context.Context, o baselineOrder) ([]writer, error) {
	// The settings are the best that were found for the gateway; without them the baseline would be lower.
	db, err := openSQLite(ctx, o.Store, "page_size(8192)", "cache_size(-32768)", "wal_autocheckpoint(8192)")
	if err != nil {
		return nil, err
	}
	if _, err := schema.Migrate(ctx, db, schema.SQLite, schema.DefaultName); err != nil {
		return nil, err
	}
	pooled, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var conn driver.Conn
	if err := pooled.Raw(func(c any) error { conn = c.(driver.Conn); return nil }); err != nil {
		return nil, err
	}
	return prepareSQLite(conn)
}

func prepareSQLite(conn driver.Conn) ([]writer, error) {
	var stmts []driver.StmtExecContext
	for _, text := range []string{
		"BEGIN IMMEDIATE",
		"INSERT INTO " + sqlitePrefix + "events (id, source, key, event_type, digest, received_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (source, key) DO NOTHING",
		"INSERT INTO " + sqlitePrefix + "bodies (event_id, header, body) VALUES (?, ?, ?)",
		"COMMIT",
	} {
		s, err := conn.Prepare(text)
		if err != nil {
			return nil, err
		}
		stmts = append(stmts, s.(driver.StmtExecContext))
	}
	run := func(i int, values ...driver.Value) error {
		args := make([]driver.NamedValue, len(values))
		for i, v := range values {
			args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
		}
		_, err := stmts[i].ExecContext(context.Background(), args)
		return err
	}
	return []writer{func(b *batch) error {
		if err := run(0); err != nil {
			return err
		}
		now := time.Now().UnixMicro()
		for i, id := range b.ids {
			err := errors.Join(
				run(1, id, "bench", b.keys[i], "invoice.paid", b.digests[i], now),
				run(2, id, []byte(header), b.body),
			)
			if err != nil {
				return err
			}
		}
		return run(3)
	}}, nil
}

// baselinePostgres writes a batch as one statement over arrays, on two connections, so that one can wait
// for the disk while the other works.
func baselinePostgres(ctx context.Context, o baselineOrder) ([]writer, error) {
	pool, err := openPool(ctx, serverOrder{Store: o.Store})
	if err != nil {
		return nil, err
	}
	var db *sql.DB = stdlib.OpenDBFromPool(pool)
	if _, err := schema.Migrate(ctx, db, schema.Postgres, schema.DefaultName); err != nil {
		return nil, fmt.Errorf("making the tables: %w", err)
	}
	const text = `
		WITH won AS (
			INSERT INTO ` + postgresPrefix + `events (id, source, key, event_type, digest, received_at)
			SELECT id, 'bench', key, 'invoice.paid', digest, $4 FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS e (id, key, digest)
			ON CONFLICT (source, key) DO NOTHING
			RETURNING id
		)
		INSERT INTO ` + postgresPrefix + `bodies (event_id, header, body)
		SELECT id, header, body FROM unnest($1::bigint[], $5::bytea[], $6::bytea[]) AS b (id, header, body)
		WHERE id IN (SELECT id FROM won)`
	w := func(b *batch) error {
		headers, bodies := make([][]byte, len(b.ids)), make([][]byte, len(b.ids))
		for i := range b.ids {
			headers[i], bodies[i] = []byte(header), b.body
		}
		_, err := pool.Exec(ctx, text, b.ids, b.keys, b.digests, time.Now(), headers, bodies)
		return err
	}
	return []writer{w, w}, nil
}
