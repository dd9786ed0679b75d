package relay_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/relay"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// TestMain makes the test binary the program of [TestPoisonTakesNobodyAlong] when it is started as such.
func TestMain(m *testing.M) {
	if journal := os.Getenv("RELAY_TEST_JOURNAL"); journal != "" {
		if err := work(os.Getenv("RELAY_TEST_DRIVER"), os.Getenv("RELAY_TEST_DSN"), journal); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, pgtest.Kept())
}

// poisoned is the exit status of a process that a handler ended.
const poisoned = 3

// work runs a relay until there is nothing left to do. What its handler begins stands in the journal.
func work(driver, dsn, journal string) error {
	store, end, err := openSQL(driver, dsn)
	if err != nil {
		return err
	}
	defer end()
	begun, err := os.OpenFile(journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer begun.Close()
	ctx, quiet := context.WithCancel(context.Background())
	handle := func(_ context.Context, e hookonce.QueuedEffect) error {
		fmt.Fprintln(begun, e.Step)
		if strings.HasPrefix(e.Step, "poison") {
			time.AfterFunc(10*time.Millisecond, func() { os.Exit(poisoned) })
		}
		time.Sleep(50 * time.Millisecond) // what the effect takes: in flight when its neighbour exits
		return nil
	}
	observe := func(context.Context, relay.Observation) {
		if open, err := stillOpen(store); err == nil && open == 0 {
			quiet()
		}
	}
	return relay.New(store, map[string]relay.Handler{"mail": handle}, relay.WithLease(time.Second),
		relay.WithPoll(10*time.Millisecond), relay.WithObserver(observe)).Run(ctx)
}

func stillOpen(store hookonce.EffectAdmin) (n int, err error) {
	for _, state := range []hookonce.State{hookonce.StatePending, hookonce.StateProcessing, hookonce.StateFailed} {
		some, err := store.Effects(context.Background(), state, 0, 1000)
		if err != nil {
			return 0, err
		}
		n += len(some)
	}
	return n, nil
}

func openSQL(driver, dsn string) (*sqlstore.Store, func() error, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, nil, err
	}
	dialects := map[string]sqlstore.Dialect{"sqlite": sqlstore.SQLite, "pgx": sqlstore.Postgres}
	store := sqlstore.New(db, dialects[driver])
	_, err = schema.Migrate(context.Background(), db, dialects[driver], schema.DefaultName)
	return store, db.Close, err
}

// A handler that ends its process is given up after three processes. Whoever was beside it is carried out, and once
// more for each poison at most. The processes are real.
func TestPoisonTakesNobodyAlong(t *testing.T) {
	testskip.Long(t)
	for driver, dsn := range map[string]func(*testing.T) string{
		"sqlite": func(t *testing.T) string {
			return "file:" + filepath.Join(t.TempDir(), "app.db") + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)"
		},
		"pgx": func(t *testing.T) string { return pgtest.DSN(t) },
	} {
		for _, poisons := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d poisons", driver, poisons), func(t *testing.T) {
				const healthy = 12
				dsn := dsn(t)
				store, end, err := openSQL(driver, dsn)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { end() })
				var steps []string
				for i := range healthy {
					if i < poisons {
						steps = append(steps, fmt.Sprint("poison ", i))
					}
					steps = append(steps, fmt.Sprint("healthy ", i))
				}
				if err := enqueueSteps(t, store, dsn, driver, steps); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(t.TempDir(), "journal")
				deaths := untilQuiet(t, driver, dsn, file)
				times := begun(t, file)
				for _, step := range steps {
					switch {
					case strings.HasPrefix(step, "poison"):
						if times[step] != relay.DefaultDeaths {
							t.Errorf("%s was carried out %d times, want %d", step, times[step], relay.DefaultDeaths)
						}
					case times[step] < 1 || times[step] > 1+poisons:
						t.Errorf("%s was carried out %d times, want 1 to %d", step, times[step], 1+poisons)
					}
				}
				if most := poisons * relay.DefaultDeaths; deaths > most {
					t.Errorf("%d processes died, want %d at most", deaths, most)
				}
				for state, want := range map[hookonce.State]int{hookonce.StateDone: healthy, hookonce.StateDead: poisons} {
					if got, err := store.Effects(t.Context(), state, 0, 100); err != nil || len(got) != want {
						t.Errorf("%d effects are %s, want %d, %v", len(got), state, want, err)
					}
				}
			})
		}
	}
}

// enqueueSteps stores the effects in one transaction.
func enqueueSteps(t *testing.T, store *sqlstore.Store, dsn, driver string, steps []string) error {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, step := range steps {
		err := store.Enqueue(t.Context(), tx, hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "mail", Step: step})
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

// untilQuiet starts processes, one after the other, until one ends because there is nothing left to do, and returns
// how many a handler ended.
func untilQuiet(t *testing.T, driver, dsn, file string) int {
	t.Helper()
	for deaths := range 50 {
		p := exec.CommandContext(t.Context(), os.Args[0])
		p.Env = append(os.Environ(), "RELAY_TEST_JOURNAL="+file, "RELAY_TEST_DRIVER="+driver, "RELAY_TEST_DSN="+dsn)
		out, err := p.CombinedOutput()
		if err == nil {
			return deaths
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != poisoned {
			t.Fatalf("a process ended with %v\n%s", err, out)
		}
	}
	t.Fatal("there is no end to it")
	return 0
}

// begun returns how often each step was begun.
func begun(t *testing.T, file string) map[string]int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	times := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		times[lines.Text()]++
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return times
}
