//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/journal"
)

// seed puts into a row's database what it begins with.
func (rn *runner) seed(r row, dsn string) error {
	aged, keys := r.aged*rn.rounds, 0 // the former on Postgres alone
	if r.keys {
		keys = rn.size
	}
	if aged+keys == 0 {
		return nil
	}
	ctx := context.Background()
	c := config.Default()
	var err error
	if c.Store, err = config.ParseStore(dsn); err != nil {
		return err
	}
	if _, _, err := gateway.Migrate(ctx, c); err != nil {
		return err
	}
	if r.store == "sqlite" {
		return fillFile(ctx, dsn, keys)
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if keys > 0 {
		return fillKeys(ctx, conn, keys)
	}
	return fillAged(ctx, conn, aged, rn.rounds)
}

// agedParts is how many partitions there are for the events of one round that are a month old. One is dropped a
// second.
const agedParts = 4

// fillAged stores events with their bodies and attempts that came a month ago and are done, in partitions.
func fillAged(ctx context.Context, conn *pgx.Conn, n, rounds int) error {
	at := time.Now().AddDate(0, -1, 0)
	parts := rounds * agedParts
	for i := range parts {
		first, end := journal.FirstID(at.Add(time.Duration(i)*time.Hour)), journal.FirstID(at.Add(time.Duration(i+1)*time.Hour))
		if err := fillPartition(ctx, conn, i, first, end, n/parts); err != nil {
			return err
		}
	}
	return settleTables(ctx, conn)
}

// fillPartition stores n events in a partition of their own.
func fillPartition(ctx context.Context, conn *pgx.Conn, number int, first, end int64, n int) error {
	for _, sql := range []string{
		fmt.Sprintf(`CREATE TABLE hookonce.bodies_aged_%d PARTITION OF hookonce.bodies FOR VALUES FROM (%d) TO (%d) WITH (toast_tuple_target = 8160)`, number, first, end),
		fmt.Sprintf(`CREATE TABLE hookonce.attempts_aged_%d PARTITION OF hookonce.attempts FOR VALUES FROM (%d) TO (%d)`, number, first, end),
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	for _, sql := range []string{
		`INSERT INTO hookonce.events (id, source, key, received_at) SELECT $1::bigint + n, 'bench', md5(($1::bigint + n)::text), now() FROM generate_series(1, $2::int) n`,
		`INSERT INTO hookonce.bodies (event_id, header, body) SELECT $1::bigint + n, '', convert_to(repeat('x', 2048), 'UTF8') FROM generate_series(1, $2::int) n`,
		`INSERT INTO hookonce.attempts (event_id, destination, token, outcome, status, started_at, duration_us)
			SELECT $1::bigint + n, 'bench', 1, 'done', 200, now(), 1000 FROM generate_series(1, $2::int) n`,
	} {
		if _, err := conn.Exec(ctx, sql, first, n); err != nil {
			return err
		}
	}
	return nil
}

// fillKeys stores the events of the weeks in which ids are kept and bodies are not. The index of keys is
// made at the end, or it would take hours.
func fillKeys(ctx context.Context, conn *pgx.Conn, n int) error {
	began := time.Now()
	first := journal.FirstID(began.AddDate(0, -2, 0))
	const drop = `ALTER TABLE hookonce.events DROP CONSTRAINT events_source_key_key`
	if _, err := conn.Exec(ctx, drop); err != nil {
		return err
	}
	const step = 1_000_000
	for done := 0; done < n; done += step {
		_, err := conn.Exec(ctx, `INSERT INTO hookonce.events (id, source, key, event_type, digest, received_at)
			SELECT $1::bigint + n, 'bench', 'evt_' || md5(n::text), 'invoice.paid', decode(md5(n::text), 'hex'), now()
			FROM generate_series($2::int, $3::int) n`, first, done, min(done+step, n)-1)
		if err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, `ALTER TABLE hookonce.events ADD CONSTRAINT events_source_key_key UNIQUE (source, key)`); err != nil {
		return err
	}
	if err := settleTables(ctx, conn); err != nil {
		return err
	}
	var size string
	err := conn.QueryRow(ctx, `SELECT pg_size_pretty(pg_total_relation_size('hookonce.events'))`).Scan(&size)
	fmt.Fprintf(os.Stderr, "%d keys, %s with their indexes, in %v\n", n, size, time.Since(began).Round(time.Second))
	return err
}

// fillFile stores such events in a file. They come in the order of their keys, or the index would take hours; what comes later
// falls anywhere between them.
func fillFile(ctx context.Context, store string, n int) error {
	began := time.Now()
	db, err := openSQLite(ctx, store, "cache_size(-262144)", "synchronous(OFF)")
	if err != nil {
		return err
	}
	defer db.Close()
	const step = 200_000
	first := journal.FirstID(began.AddDate(0, -2, 0))
	for done := 0; done < n; done += step {
		_, err := db.ExecContext(ctx, `WITH RECURSIVE k (n) AS (SELECT ?2 UNION ALL SELECT n + 1 FROM k WHERE n + 1 < ?3)
			INSERT INTO hookonce_events (id, source, key, event_type, digest, received_at)
			SELECT ?1 + n, 'bench', printf('evt_%08x%08x', n * 4294967296 / ?4, n), 'invoice.paid', randomblob(16), ?5 FROM k`,
			first, done, min(done+step, n), n, began.UnixMicro())
		if err != nil {
			return err
		}
	}
	var pages, size int64
	for pragma, to := range map[string]*int64{"page_count": &pages, "page_size": &size} {
		if err := db.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(to); err != nil {
			return err
		}
	}
	_, err = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	fmt.Fprintf(os.Stderr, "%d keys, %d MB with their indexes, in %v\n", n, pages*size>>20, time.Since(began).Round(time.Second))
	return err
}

// settleTables does what the server would do sooner or later, so that it does not do it while somebody measures.
func settleTables(ctx context.Context, conn *pgx.Conn) error {
	for _, sql := range []string{`VACUUM (ANALYZE)`, `CHECKPOINT`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
