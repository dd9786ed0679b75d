package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

var ids = journal.NewIDs(7, 0)

func entry(key string) *journal.Record {
	return &journal.Record{ID: ids.Next(time.Now()), Hold: []string{"app"}, Event: &journal.Event{
		Source: "billing", Key: key, Digest: []byte("digest"),
		Body: make([]byte, 2048), Destinations: []string{"app"}, ReceivedAt: time.Now(),
	}}
}

func accept(ctx context.Context, s journal.Store, batch ...*journal.Record) ([]journal.Result, error) {
	return s.Accept(ctx, batch, time.Now(), time.Now().Add(time.Hour))
}

// TestKilledServerLosesNothing kills the server under writers, twice: whatever they were told to be
// stored is there when it is back. The second server is set to lose commits in a crash; the store
// does not let it.
func TestKilledServerLosesNothing(t *testing.T) {
	for name, settings := range map[string][]string{
		"as it comes":                 nil,
		"with synchronous_commit off": {"synchronous_commit = off", "wal_writer_delay = 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := pgtest.Start(t, pgtest.Options{Settings: settings})
			s := open(t, cluster.DSN(t), "")
			acknowledged := map[string]int64{}
			for round := range 2 {
				killUnderLoad(t, cluster, s, round, acknowledged)
				if err := cluster.Restart(); err != nil {
					t.Fatal(err)
				}
				for key, id := range acknowledged {
					again := entry(key)
					results, err := eventually(t, s, again)
					if err != nil {
						t.Fatal(err)
					}
					if r := results[0]; r.Status != journal.Duplicate || r.ID != id {
						t.Fatalf("%s was acknowledged as %d, and now is %+v", key, id, r)
					}
				}
			}
		})
	}
}

// killUnderLoad lets writers accept until the server is gone, which it is soon after they were
// acknowledged 100 batches, and notes what was.
func killUnderLoad(t *testing.T, cluster *pgtest.Cluster, s journal.Store, round int, acknowledged map[string]int64) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	enough := make(chan struct{})
	var batches atomic.Int64
	for w := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				batch := []*journal.Record{entry(fmt.Sprintf("evt_%d_%d_%d_a", round, w, n)), entry(fmt.Sprintf("evt_%d_%d_%d_b", round, w, n))}
				results, err := accept(context.Background(), s, batch...)
				if err != nil {
					return
				}
				mu.Lock()
				for i, r := range results {
					acknowledged[batch[i].Key] = r.ID
				}
				mu.Unlock()
				if batches.Add(1) == 100 {
					close(enough)
				}
			}
		})
	}
	<-enough
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// eventually accepts once the pool has got rid of its dead connections.
func eventually(t *testing.T, s journal.Store, e *journal.Record) (results []journal.Result, err error) {
	for range 20 {
		if results, err = accept(t.Context(), s, e); err == nil {
			return results, nil
		}
	}
	return nil, err
}

// TestCutConnection cuts the connection before the server reads a batch, and before its answer to
// one arrives. Either is an error, and the retry finds out what is true.
func TestCutConnection(t *testing.T) {
	for _, tc := range []struct {
		name string
		cut  func(*proxy)
		want journal.Status
	}{
		{"before the server reads it: not persisted", func(p *proxy) { p.requests.Store(true) }, journal.Accepted},
		{"before its answer arrives: persisted", func(p *proxy) { p.answers.Store(true) }, journal.Duplicate},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := startProxy(t, pgtest.DSN(t))
			s, err := pg.Open(t.Context(), p.dsn, pg.Options{Migrate: true, MaxConns: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			// The statement must be prepared, so that the batch goes out in one piece.
			if _, err := accept(t.Context(), s, entry("before")); err != nil {
				t.Fatal(err)
			}
			first := entry("evt_1")
			tc.cut(p)
			if _, err := accept(t.Context(), s, first); err == nil {
				t.Fatal("the store says that it is stored, and cannot know")
			}
			again := entry("evt_1")
			results, err := accept(t.Context(), s, again)
			if err != nil {
				t.Fatal(err)
			}
			id := map[journal.Status]int64{journal.Accepted: again.ID, journal.Duplicate: first.ID}[tc.want]
			if results[0] != (journal.Result{Status: tc.want, ID: id}) {
				t.Fatalf("the retry got %+v, want %s of %d", results[0], tc.want, id)
			}
		})
	}
}

// proxy stands between a store and its server. When requests or answers is set, the connection ends
// at the next byte in that direction, which does not arrive.
type proxy struct {
	dsn               string
	requests, answers atomic.Bool
}

func startProxy(t *testing.T, dsn string) *proxy {
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	u.Host = l.Addr().String()
	p := &proxy{dsn: u.String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client, server)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn, addr string) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer client.Close()
		defer server.Close()
		forward(server, client, &p.requests)
	}()
	forward(client, server, &p.answers)
}

// forward copies until the end or until cut, which it resets.
func forward(to io.Writer, from io.Reader, cut *atomic.Bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || cut.CompareAndSwap(true, false) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func TestServerDown(t *testing.T) {
	cluster := pgtest.Start(t, pgtest.Options{})
	s := open(t, cluster.DSN(t), "")
	if err := cluster.Stop(true); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("Ping of a stopped server succeeded")
	}
	if _, err := accept(t.Context(), s, entry("evt_1")); err == nil {
		t.Error("a stopped server accepted an event")
	}
}

func TestPingNoticesReadOnly(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn, "")
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, text := range []string{
		fmt.Sprintf(`ALTER DATABASE %s SET default_transaction_read_only = on`, conn.Config().Database),
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
	} {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // the first pings meet the connections that were cut
		if err = s.Ping(t.Context()); err != nil && strings.Contains(err.Error(), "read-only") {
			return
		}
	}
	t.Fatalf("Ping of a read-only database: %v", err)
}

func TestOpenChecksTheSchema(t *testing.T) {
	dsn := pgtest.DSN(t)
	if _, err := pg.Open(t.Context(), dsn, pg.Options{}); !errors.Is(err, hookonce.ErrSchemaMissing) {
		t.Fatalf("opening an empty database: %v", err)
	}
	if _, err := pg.Open(t.Context(), dsn, pg.Options{Schema: `x"; DROP TABLE y; --`}); err == nil {
		t.Fatal("a schema's name can smuggle in SQL")
	}
	if _, err := pg.Open(t.Context(), "postgres://[", pg.Options{}); err == nil {
		t.Fatal("a DSN that is none was taken")
	}
}

func TestWritersDiffer(t *testing.T) {
	dsn := pgtest.DSN(t)
	a, b := open(t, dsn, ""), open(t, dsn, "")
	if a.Writer() == b.Writer() || a.Writer() < 1 || b.Writer() > journal.MaxWriter {
		t.Fatalf("writer numbers %d and %d", a.Writer(), b.Writer())
	}
}

// Purge against replay rests on advisory locks: no journal is kept where they lock nothing, whoever made its tables.
func TestOpenRefusesLocksThatLockNothing(t *testing.T) {
	dsn := pgtest.DSN(t)
	open(t, dsn, "")
	through := pgproxy.WithoutLocks(t, dsn)
	for _, migrate := range []bool{false, true} {
		s, err := pg.Open(t.Context(), through, pg.Options{Migrate: migrate})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "two transactions were given the same one at once") {
			t.Errorf("migrate: %v: %v", migrate, err)
		}
	}
}
