package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/sqlstore"
)

// interposer makes connections on which meanwhile runs once, ahead of the nth statement that
// contains text.
type interposer struct {
	testdb.Connector
	text      string
	nth       int64
	meanwhile func()
	seen      atomic.Int64
}

// Connect implements [driver.Connector].
func (i *interposer) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := i.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return interposed{inner.(*testdb.Conn), i}, nil
}

type interposed struct {
	*testdb.Conn
	of *interposer
}

func (c interposed) come(query string) {
	if strings.Contains(query, c.of.text) && c.of.seen.Add(1) == c.of.nth {
		c.of.meanwhile()
	}
}

// QueryContext implements [driver.QueryerContext].
func (c interposed) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.come(query)
	return c.Conn.QueryContext(ctx, query, args)
}

// ExecContext implements [driver.ExecerContext].
func (c interposed) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.come(query)
	return c.Conn.ExecContext(ctx, query, args)
}

// A claim that has seen a failed one, and takes it over, does so only if that is still what it has
// seen. These databases look first.
func TestAClaimOfWhatIsChangedMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		change   string
		verdict  hookonce.Verdict
		token    int64
		conflict bool
	}{
		"it is done":                  {`UPDATE {}claims SET state = 'done'`, hookonce.Duplicate, 1, true},
		"its failure pinned it":       {`UPDATE {}claims SET pinned = 1`, hookonce.Pinned, 1, true},
		"it is purged":                {`DELETE FROM {}claims`, hookonce.Acquired, 1, false},
		"it is purged and fails anew": {`UPDATE {}claims SET first_seen = first_seen + 1, digest = X'74776F'`, hookonce.Acquired, 2, false},
	} {
		for driver, c := range map[string]connection{"modernc": modernc, "mattn": mattn, "mysql": goMySQL} {
			t.Run(name+", "+driver, func(t *testing.T) {
				p := c.places(t)(t)
				db := c.Open(t, p.DSN, new(testdb.Faults))
				tables := c.Create(t, db, p)
				inner, err := c.Connector(p.DSN)
				must(t, err)
				taking := &interposer{
					Connector: testdb.Connector{Connector: inner, Faults: new(testdb.Faults)}, text: "INSERT INTO", nth: 2,
					meanwhile: func() { exec(t, db, strings.ReplaceAll(tt.change, "{}", tables)) },
				}
				if c.Dialect == sqlstore.MySQL {
					taking.text, taking.nth = "LAST_INSERT_ID(token + 1)", 1
				}
				own := sql.OpenDB(taking)
				t.Cleanup(func() { must(t, own.Close()) })
				open := func(db *sql.DB) *sqlstore.Store { return sqlstore.New(db, c.Dialect, sqlstore.WithSchema(p.Schema)) }
				failed, err := open(db).Claim(t.Context(), request)
				must(t, err)
				must(t, open(db).Fail(t.Context(), failed, hookonce.Failure{Err: errDeclined}))

				other := request
				other.Digest = []byte("two")
				claim, err := open(own).Claim(t.Context(), other)
				must(t, err)
				if claim.Verdict != tt.verdict || claim.Token != tt.token || claim.Conflict != tt.conflict {
					t.Errorf("claimed %+v; want %v, token %d, conflict %v", claim, tt.verdict, tt.token, tt.conflict)
				}
				if taking.seen.Load() < taking.nth {
					t.Error("nothing happened meanwhile")
				}
			})
		}
	}
}

// What MySQL's purge finds old while somebody is at work on it, it waits for, and leaves if it is
// not old or not over any more.
func TestAPurgeWaitsForWhoIsAtWork(t *testing.T) {
	type step func(t *testing.T, f fixture, tx *sql.Tx)
	newer := func(version int64, want bool) step {
		return func(t *testing.T, f fixture, tx *sql.Tx) {
			got, err := f.Newer(t.Context(), tx, "order-1", hookonce.Version(version))
			must(t, err)
			if got != want {
				t.Errorf("version %d is newer: %v", version, got)
			}
		}
	}
	for kind, tt := range map[hookonce.PurgeKind]struct{ old, work, after step }{
		hookonce.PurgeFailed: {
			func(t *testing.T, f fixture, _ *sql.Tx) {
				c, err := f.Claim(t.Context(), request)
				must(t, err)
				must(t, f.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined}))
			},
			func(t *testing.T, f fixture, tx *sql.Tx) {
				_, err := f.ClaimTx(t.Context(), tx, request)
				must(t, err)
			},
			func(t *testing.T, f fixture, _ *sql.Tx) { f.left(t, hookonce.StateDone, "") },
		},
		hookonce.PurgeVersions: {newer(1, true), newer(3, true), newer(2, false)},
	} {
		t.Run(string(kind), func(t *testing.T) {
			every(t, mysqlConnections(), func(t *testing.T, f fixture) {
				run := func(s step, then func()) {
					tx, err := f.open().BeginTx(t.Context(), nil)
					must(t, err)
					s(t, f, tx)
					then()
					must(t, tx.Commit())
				}
				run(tt.old, func() {})
				before, purged := time.Now(), make(chan error, 1)
				run(tt.work, func() {
					go func() {
						n, err := f.Purge(t.Context(), hookonce.PurgeRequest{Kind: kind, Before: before, Limit: 10})
						if n != 0 {
							err = fmt.Errorf("purged %d, %v", n, err)
						}
						purged <- err
					}()
					untilOneWaits(t, f.db)
				})
				must(t, <-purged)
				run(tt.after, func() {})
			})
		})
	}
}

// clashing makes connections to a cluster where each commit loses: it is rolled back, others go on,
// and the answer is the number.
type clashing struct {
	testdb.Connector
	others func()
	number uint16
}

// Connect implements [driver.Connector].
func (c clashing) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return clash{Conn: inner.(*testdb.Conn), of: c}, nil
}

type clash struct {
	*testdb.Conn
	driver.Tx
	of clashing
}

// BeginTx implements [driver.ConnBeginTx].
func (c clash) BeginTx(ctx context.Context, opts driver.TxOptions) (_ driver.Tx, err error) {
	c.Tx, err = c.Conn.BeginTx(ctx, opts)
	return c, err
}

// Commit implements [driver.Tx].
func (c clash) Commit() error {
	if err := c.Tx.Rollback(); err != nil {
		return err
	}
	c.of.others()
	return &mysql.MySQLError{Number: c.of.number, Message: "the commit lost"}
}

// What a cluster answers to a commit that loses is a refusal and no unknown outcome. Where another
// attempt has done the work by then, the event is a duplicate.
func TestACommitThatLosesInACluster(t *testing.T) {
	for number, of := range map[uint16]string{1213: "Galera", 3101: "a replication group"} {
		t.Run(of, func(t *testing.T) {
			p := goMySQL.places(t)(t)
			db := goMySQL.Open(t, p.DSN, new(testdb.Faults))
			f := fixture{sqlstore.New(db, sqlstore.MySQL, sqlstore.WithSchema(p.Schema)), db, nil, goMySQL.Create(t, db, p)}
			inner, err := goMySQL.Connector(p.DSN)
			must(t, err)
			within := func(others func()) (hookonce.Claim, error) {
				own := sql.OpenDB(clashing{testdb.Connector{Connector: inner, Faults: new(testdb.Faults)}, others, number})
				defer own.Close()
				losing := fixture{sqlstore.New(own, sqlstore.MySQL, sqlstore.WithSchema(p.Schema)), own, nil, f.tables}
				return losing.within(t)
			}
			if _, err := within(func() {}); err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) || errors.Is(err, hookonce.ErrTraceLost) {
				t.Errorf("error is %v, want a refusal", err)
			}
			f.left(t, hookonce.StateFailed, "refused")
			c, err := within(func() {
				_, err := f.within(t)
				must(t, err)
			})
			if number == 1213 && (err != nil || c.Verdict != hookonce.Duplicate) || errors.Is(err, hookonce.ErrUnknownOutcome) {
				t.Errorf("who lost to the one that did the work is answered %v, %v", c.Verdict, err)
			}
			f.left(t, hookonce.StateDone, "")
		})
	}
}
