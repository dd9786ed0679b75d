package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/storetest"
	"golang.org/x/sync/errgroup"
)

// Users open SQLite in other ways than the package advises. The guarantees hold all the same.
func TestOtherSettings(t *testing.T) {
	testskip.Long(t)
	testSettings(t, map[string]connection{
		"rollback journal":       mattn.opened("?_busy_timeout=10000"),
		"no patience":            mattn.opened("?_journal_mode=WAL&_busy_timeout=0"),
		"transactions write":     mattn.opened("?_journal_mode=WAL&_txlock=immediate"),
		"as the package advises": mattn.opened("?_journal_mode=WAL&_busy_timeout=1000&_synchronous=FULL"),
	})
}

func TestOtherSettingsOfModernc(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	testSettings(t, map[string]connection{
		"rollback journal":       modernc.opened("?_pragma=busy_timeout(10000)"),
		"no patience":            modernc.opened("?_pragma=journal_mode(WAL)&_pragma=busy_timeout(0)"),
		"transactions write":     modernc.opened("?_pragma=journal_mode(WAL)&_txlock=immediate"),
		"as the package advises": modernc.opened("?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)"),
	})
}

func testSettings(t *testing.T, all map[string]connection) {
	t.Parallel()
	for name, c := range all {
		t.Run(name, func(t *testing.T) { storetest.RunTxConcurrent(t, c.config(t)) })
	}
}

// opened is the connection with other parameters.
func (c connection) opened(parameters string) connection {
	c.places = files(parameters)
	return c
}

// A handler that runs long holds up every writer of a SQLite database, but nobody who only asks about
// finished work.
func TestADuplicateDoesNotWaitForAWriter(t *testing.T) {
	every(t, sqliteConnections(), func(t *testing.T, f fixture) {
		_, err := f.within(t)
		must(t, err)
		other := request
		other.Key = "evt_2"
		_, err = f.Within(t.Context(), other, func(*sql.Tx, hookonce.Claim) error {
			c, err := f.within(t)
			must(t, err)
			if c.Verdict != hookonce.Duplicate {
				t.Errorf("a copy of finished work was answered %#v", c)
			}
			if c, err = f.Claim(t.Context(), request); err != nil || c.Verdict != hookonce.Duplicate {
				t.Errorf("a copy of finished work was answered %#v, %v", c, err)
			}
			return nil
		})
		must(t, err)
	})
}

// Whatever a writer holds up for longer than the bounded wait is busy.
func TestAWriterElsewhereIsBusy(t *testing.T) {
	every(t, sqliteConnections(), func(t *testing.T, f fixture) {
		other := request
		other.Key = "evt_2"
		_, err := f.Within(t.Context(), other, func(*sql.Tx, hookonce.Claim) error {
			c, err := f.within(t)
			if !errors.Is(err, hookonce.ErrBusy) || c.Verdict != hookonce.Busy {
				t.Errorf("Within was answered %#v, %v", c, err)
			}
			if c, err = f.Claim(t.Context(), request); err != nil || c.Verdict != hookonce.Busy {
				t.Errorf("Claim was answered %#v, %v", c, err)
			}
			for range 5 {
				short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond) // less than that wait
				if c, err = f.Claim(short, request); err == nil || c.Verdict == hookonce.Busy {
					t.Errorf("a caller whose context ended was answered %#v, %v", c, err)
				}
				cancel()
			}
			return nil
		})
		must(t, err)
		if _, err := f.Lookup(t.Context(), request.Ref); !errors.Is(err, hookonce.ErrNotFound) {
			t.Errorf("Lookup: %v, want ErrNotFound", err)
		}
	})
}

// The same where transactions take the write lock when they begin: that they cannot begin is no
// fault of the store, and costs the pool no connection.
func TestAWriterElsewhereIsBusyWhereTransactionsWrite(t *testing.T) {
	mo, ma := modernc, mattn
	mo.places = files("?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5)&_txlock=immediate")
	ma.places = files("?_journal_mode=WAL&_busy_timeout=5&_txlock=immediate")
	every(t, map[string]connection{"modernc": mo, "mattn": ma}, func(t *testing.T, f fixture) {
		other := request
		other.Key = "evt_2"
		_, err := f.Within(t.Context(), other, func(*sql.Tx, hookonce.Claim) error {
			c, err := f.within(t)
			if !errors.Is(err, hookonce.ErrBusy) || c.Verdict != hookonce.Busy {
				t.Errorf("Within was answered %#v, %v", c, err)
			}
			if n := f.db.Stats().InUse; n != 1 {
				t.Errorf("%d connections are in use, and one handler runs", n)
			}
			return nil
		})
		must(t, err)
	})
}

// With a rollback journal whoever reads keeps others from committing. That is a refusal, and no
// unknown outcome.
func TestACommitThatReadersKeepFromHappening(t *testing.T) {
	mo, ma := modernc, mattn
	mo.places, ma.places = files("?_pragma=busy_timeout(5)"), files("?_busy_timeout=5")
	every(t, map[string]connection{"modernc": mo, "mattn": ma}, func(t *testing.T, f fixture) {
		reader, err := f.open().BeginTx(t.Context(), nil)
		must(t, err)
		queryRow[int](t, reader, `SELECT count(*) FROM `+f.tables+`claims`)
		_, err = f.within(t)
		if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Errorf("error is %v, want a refusal", err)
		}
		must(t, reader.Rollback())
		c, err := f.within(t)
		must(t, err)
		if c.Verdict != hookonce.Acquired {
			t.Errorf("the next copy was answered %v", c.Verdict)
		}
	})
}

// A transaction that claims first cannot fail because others write after it began, not even when
// it finds a claim that it has to read before it takes it over.
func TestClaimTxTakesTheWriteLockAtOnce(t *testing.T) {
	mo, ma := modernc, mattn
	mo.places = files("?_pragma=journal_mode(WAL)&_pragma=busy_timeout(60000)&_pragma=synchronous(OFF)")
	ma.places = files("?_journal_mode=WAL&_busy_timeout=60000&_synchronous=OFF")
	every(t, map[string]connection{"modernc": mo, "mattn": ma}, func(t *testing.T, f fixture) {
		var g errgroup.Group
		for worker := range 4 {
			g.Go(func() error {
				for i := range 20 {
					if err := f.failAndRedrive(t.Context(), fmt.Sprintf("evt_%d_%d", worker, i)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		must(t, g.Wait())
	})
}

// failAndRedrive leaves a failed claim and takes it over in a transaction.
func (f fixture) failAndRedrive(ctx context.Context, key string) error {
	req := request
	req.Key = key
	c, err := f.Claim(ctx, req)
	if err != nil {
		return err
	}
	if err := f.Fail(ctx, c, hookonce.Failure{Err: errDeclined}); err != nil {
		return err
	}
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if c, err = f.ClaimTx(ctx, tx, req); err != nil || c.Token != 2 {
		return errors.Join(fmt.Errorf("ClaimTx = %#v, %w", c, err), tx.Rollback())
	}
	return tx.Commit()
}
