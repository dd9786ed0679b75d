// Package pgstandby heeds the waits of commits for a synchronous standby, and knows a standby whose log has diverged.
package pgstandby

import (
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// UnsafeSettings are the rows (name, unsafe, safe) of the settings by which commits would be lost in a crash, or by which nobody
// would hear that somebody cancelled a wait, as far as they are so where the statement runs.
const UnsafeSettings = `FROM (VALUES ('synchronous_commit', 'off', 'on'), ('client_min_messages', 'error', 'warning')) AS s (name, unsafe, safe)
	WHERE current_setting(name) = unsafe`

// ErrCancelled says that it is not known where a commit is.
var ErrCancelled = errors.New("the wait of a commit for its standby was cancelled on the server (pg_cancel_backend): who sends or asks again is answered when a standby has it")

// Waits counts the commits whose wait for a standby was cancelled on the server. The zero value hears of none.
type Waits struct{ cancelled atomic.Int64 }

// Watch has the connections that are made by cfg tell of waits that are cancelled (pg_cancel_backend). PostgreSQL says that
// such a commit succeeded, with a warning: it is on the primary, and perhaps nowhere else. The warning's text follows the
// server's language; the function that it comes from does not (src/backend/replication/syncrep.c).
func Watch(cfg *pgx.ConnConfig) *Waits {
	w := new(Waits)
	cfg.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.Routine == "SyncRepWaitForLSN" {
			w.cancelled.Add(1)
		}
	}
	return w
}

// Heed runs what somebody is told of, and fails with [ErrCancelled] where a wait was cancelled meanwhile: of its commits or of those
// of another call that was under way, which cannot be told apart.
func (w *Waits) Heed(f func() error) error {
	before := w.cancelled.Load()
	if err := f(); err != nil {
		return err
	}
	if w.cancelled.Load() != before {
		return ErrCancelled
	}
	return nil
}
