//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/hookonce/hookonce/internal/observe"
)

// callers posts calls without a credential, each with a new key.
func callers(path string, from origin) func(context.Context, *runner) error {
	return floods(flooder{conns: 16, least: 16, from: from, pace: 2 * time.Millisecond, next: func(i, n int) []byte {
		return request("POST "+path, "x", fmt.Sprintf("Authorization: Bearer nobody-%d-%d\r\nIdempotency-Key: \"key-%[1]d-%[2]d\"\r\n", i, n), "{}")
	}})
}

// file is the database of the attack under way, on SQLite.
func (rn *runner) file() string { return filepath.Join(rn.place, "hookonce.db") }

// rows counts the rows of a table that fit a condition.
func (rn *runner) rows(ctx context.Context, table, where string) (n int, err error) {
	if rn.cluster != nil {
		conn, err := pgx.Connect(ctx, rn.dsn)
		if err != nil {
			return 0, err
		}
		defer conn.Close(ctx)
		err = conn.QueryRow(ctx, "SELECT count(*) FROM hookonce."+table+" WHERE "+where).Scan(&n)
		return n, err
	}
	db, err := rn.open()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM hookonce_"+table+" WHERE "+where).Scan(&n)
	return n, err
}

// open opens the database as somebody outside does.
func (rn *runner) open() (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+rn.file()+"?mode=ro&_pragma=busy_timeout(5000)")
}

// checkRows bounds the rows that callers leave among the claims.
func checkRows(most int) func(context.Context, *runner) {
	return bounded("claims", "source = 'gateway:charges' AND key LIKE '%key-%'", most)
}

// checkObserved bounds the rows that forged requests leave among the observations, where most are counted together.
func checkObserved(ctx context.Context, rn *runner) {
	bounded("observations", "1 = 1", observe.MaxRows/10)(ctx, rn)
}

// bounded bounds the rows of a table that fit a condition. Those of requests that are under way when the attack ends may go
// a moment later.
func bounded(table, where string, most int) func(context.Context, *runner) {
	return func(ctx context.Context, rn *runner) {
		deadline := time.Now().Add(3 * time.Second)
		n, err := rn.rows(ctx, table, where)
		for err == nil && n > most && time.Now().Before(deadline) {
			pause(ctx, 50*time.Millisecond)
			n, err = rn.rows(ctx, table, where)
		}
		switch {
		case err != nil:
			rn.breaks("rows: %v", err)
		case n > most:
			rn.breaks("%d rows, stated are %d", n, most)
		default:
			rn.note("%d rows", n)
		}
	}
}

// logSize returns the size of the write-ahead log.
func (rn *runner) logSize() int64 {
	s, err := os.Stat(rn.file() + "-wal")
	if err != nil {
		return 0
	}
	return s.Size()
}

// shrunk is to what size the write-ahead log is cut once nobody reads from long ago.
const shrunk = 64 << 20

// longReader holds a transaction of a reader for half of the time while large events come.
func longReader(ctx context.Context, rn *runner) error {
	db, err := rn.open()
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&n); err != nil {
		return err
	}
	load, stop := context.WithTimeout(ctx, rn.duration/2)
	defer stop()
	for i := 0; load.Err() == nil; i++ {
		key := fmt.Sprint("large-", i)
		req, err := rn.sender.signed(key, fmt.Appendf(nil, `{"id":%q,"type":"large","note":%q}`, key, strings.Repeat("n", 900_000)))
		if err != nil {
			return err
		}
		status, _, err := rn.sender.do(0, req)
		_, _ = rn.sender.acknowledge(status, err, key)
	}
	held := rn.logSize()
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	deadline := time.Now().Add(10 * time.Second)
	for rn.logSize() > shrunk && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	rn.note("the log grew to %s, and is %s since the reader is gone", mib(held), mib(rn.logSize()))
	if rn.logSize() > shrunk {
		rn.breaks("the log stays at %s", mib(rn.logSize()))
	}
	if held > 2*shrunk && !rn.gateway.says("log") {
		rn.breaks("no line tells of the log")
	}
	status, text, err := rn.admin(context.WithoutCancel(ctx), "/metrics", nil)
	if err != nil || status != 200 || !strings.Contains(text, "hookonce_journal_log_bytes") {
		rn.breaks("no metric tells the size of the log")
	}
	return nil
}

func deleteFile(file string) error {
	return errors.Join(os.Remove(file), os.Remove(file+"-wal"), os.Remove(file+"-shm"))
}

func deleteLog(file string) error { return os.Remove(file + "-wal") }

func replaceFile(file string) error {
	return errors.Join(copyFile(file, file+".new"), os.Rename(file+".new", file))
}

// overwriteFile writes a file over the database that is shorter, as an older copy is.
func overwriteFile(file string) error {
	s, err := os.Stat(file)
	if err != nil {
		return err
	}
	older := file + ".older"
	return errors.Join(copyFile(file, older), os.Truncate(older, s.Size()/2), copyFile(older, file))
}

// unready reports whether /readyz says that the gateway cannot take events.
func (rn *runner) unready(ctx context.Context) bool {
	status, _, err := rn.admin(ctx, "/readyz", nil)
	return err == nil && status == http.StatusServiceUnavailable
}

// loseFile takes the database from the gateway. From a moment later on nothing may be acknowledged.
func loseFile(lose func(file string) error) func(context.Context, *runner) error {
	return func(ctx context.Context, rn *runner) error {
		if err := lose(rn.file()); err != nil {
			return err
		}
		lost := time.Now()
		pause(ctx, 100*time.Millisecond)
		late, told := 0, false
		for n := 0; ctx.Err() == nil; n++ {
			status, err := rn.sender.event(1<<21 + n)
			rn.count(outcome(status, err))
			if err == nil && status/100 == 2 {
				late++
			}
			if !told && rn.unready(ctx) {
				told = true
				rn.note("/readyz says so after %s", short(time.Since(lost)))
			}
			pause(ctx, 20*time.Millisecond)
		}
		// /readyz answers for a second what it saw last, and the attack may be shorter.
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		for ; !told && rest.Err() == nil; pause(rest, 20*time.Millisecond) {
			told = rn.unready(rest)
		}
		if late > 0 {
			rn.breaks("%d events were acknowledged without a file", late)
		}
		if !told {
			rn.breaks("/readyz says ready without a file")
		}
		return nil
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// secondName starts another gateway on another name of the file, and ends it if it starts.
func secondName(_ context.Context, rn *runner) error {
	place := filepath.Join(rn.place, "elsewhere")
	if err := os.Mkdir(place, 0o700); err != nil {
		return err
	}
	other := filepath.Join(place, "other.db")
	if err := os.Link(rn.file(), other); err != nil {
		return err
	}
	config := strings.NewReplacer("{store}", "sqlite:"+other, "{app}", rn.app.url, "{tokens}", "").Replace(configuration)
	g, err := startGateway(rn.binary, place, config, 0, rn.show())
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "it has 2 names"):
		rn.note("it does not start")
		return nil
	default:
		return err // it would not start on a file of its own either
	}
	rn.breaks("two gateways run on one file")
	return g.end(syscall.SIGKILL)
}
