package outbox

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/hookonce/hookonce/schema"
)

// What is there is worked off, whatever the encoding of the database is, in which the library would make no claims.
func TestEffectsOfAnyEncodingAreWorkedOff(t *testing.T) {
	dsn := pgtest.Start(t, pgtest.Options{}).DSN(t)
	admin, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.WithoutCancel(t.Context())) })
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	at, query := strings.LastIndex(dsn, "/"), dsn[strings.Index(dsn, "?"):]
	dsn = dsn[:at] + "/latin" + query
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	pgtest.Migrate(t, pool, "")
	if err := pgstore.New(pool).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "LATIN1") {
		t.Errorf("the library's check: %v", err)
	}
	_, end, err := Open(t.Context(), &config.Config{Store: config.Store{Driver: config.Postgres, DSN: dsn}, Schema: schema.DefaultName})
	if err != nil {
		t.Fatal(err)
	}
	end()
}

// Behind one address another server may lead by now. A connection to one that takes no writes any
// more is left, and effects are taken over the next.
func TestReadOnlyConnectionsAreLeft(t *testing.T) {
	dsn := pgtest.DSN(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Migrate(t, pool, "")
	pool.Close()
	admin, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.WithoutCancel(t.Context())) })
	queue, end, err := Open(t.Context(), &config.Config{Store: config.Store{Driver: config.Postgres, DSN: dsn + "&pool_max_conns=1"}, Schema: schema.DefaultName})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	take := func() error {
		_, err := queue.TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"mail"}, Limit: 1, Lease: time.Minute})
		return err
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	readOnly := func(setting string) { // on connections that are made from now on
		t.Helper()
		set := `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = ` + setting + `', current_database()); END $$`
		if _, err := admin.Exec(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	readOnly("on")
	if _, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	var refused *pgconn.PgError
	for tries := 0; !errors.As(err, &refused) || refused.Code != "25006"; tries++ {
		if err = take(); tries == 10 {
			t.Fatalf("after the failover: %v, want the server's refusal (25006)", err)
		}
	}
	readOnly("off")
	if err := take(); err != nil {
		t.Errorf("the connection is still used: %v", err)
	}
}

// What a relay has done is on the disk before it says so, and it leaves the file as the application has it.
func TestPragmas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	application, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer application.Close()
	if _, err := application.Exec("CREATE TABLE t (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+pragmas)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for pragma, want := range map[string]string{"synchronous": "2", "busy_timeout": "2000", "journal_mode": "delete"} { // 2 is FULL
		var got string
		if err := db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %s", pragma, got, err, want)
		}
	}
}

// A file is the application's, and so is the prefix of its tables.
func TestPrefixOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := schema.Migrate(t.Context(), db, schema.SQLite, "shop"); err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{Store: config.Store{Driver: config.SQLite, DSN: path}, Schema: schema.DefaultName}
	if _, _, err := Open(t.Context(), cfg); !errors.Is(err, hookonce.ErrSchemaMissing) {
		t.Errorf("the usual prefix: %v, want ErrSchemaMissing", err)
	}
	cfg.Schema = "shop"
	_, end, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	end()
}

// A file that was taken away is left: nothing is taken from it, and nothing is recorded in what is there now. It ends the relay.
func TestAFileThatIsGone(t *testing.T) {
	for said, take := range map[string]func(path string) error{
		"was replaced by another": func(path string) error { migrated(t, path+".new"); return os.Rename(path+".new", path) },
		"was deleted or moved":    func(path string) error { return os.Rename(path, path+".old") },
	} {
		t.Run(said, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			migrated(t, path)
			queue, end, err := Open(t.Context(), &config.Config{Store: config.Store{Driver: config.SQLite, DSN: path}, Schema: schema.DefaultName})
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			calls := map[string]func() error{
				"take": func() error {
					_, err := queue.TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"mail"}, Limit: 1, Lease: time.Minute})
					return err
				},
				"complete": func() error { return queue.CompleteEffect(t.Context(), hookonce.QueuedEffect{ID: 1, Token: 1}) },
				"fail": func() error {
					return queue.FailEffect(t.Context(), hookonce.QueuedEffect{ID: 1, Token: 1}, hookonce.Failure{}, time.Now())
				},
			}
			for what, call := range calls {
				if err := call(); err != nil && !errors.Is(err, hookonce.ErrNotFound) {
					t.Fatalf("%s: %v", what, err)
				}
			}
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			for what, call := range calls {
				if err := call(); !hookonce.IsPermanent(err) || !strings.Contains(err.Error(), "the file "+path+" "+said) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// during is an outbox whose file something happens to while effects are taken.
type during struct {
	Store
	happens func() error
}

func (d during) TakeEffects(context.Context, hookonce.TakeRequest) ([]hookonce.QueuedEffect, error) {
	return []hookonce.QueuedEffect{{ID: 1}}, d.happens()
}

// What was taken while the file was taken away is not begun; what was taken while nobody could look is, or it would wait for the
// end of its lease.
func TestAFileThatGoesMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(dir, path string) error
		taken   int
	}{
		"it is moved": {func(_, path string) error { return os.Rename(path, path+".old") }, 0},
		"nothing":     {func(string, string) error { return nil }, 1},
		"nobody may look": {func(dir, _ string) error { // a link that leads to itself
			return errors.Join(os.Rename(dir, dir+".old"), os.Symlink(dir, dir))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			path := filepath.Join(dir, "app.db")
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			s := standing{during{happens: func() error { return c.happens(dir, path) }}, path, info}
			taken, err := s.TakeEffects(t.Context(), hookonce.TakeRequest{})
			if len(taken) != c.taken || (err == nil) != (c.taken == 1) {
				t.Errorf("%d are begun, %v, want %d", len(taken), err, c.taken)
			}
		})
	}
}

func migrated(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := schema.Migrate(t.Context(), db, schema.SQLite, schema.DefaultName); err != nil {
		t.Fatal(err)
	}
}
