package pgstandby

import (
	"errors"
	"fmt"
)

var (
	// ErrNoCopy says that a server is no copy of another.
	ErrNoCopy = errors.New("this is another database than the store's, and no copy of it; name a standby of the store")
	// ErrDiverged says that a server was a copy of another until the log of one of them went another way.
	ErrDiverged = errors.New("this was a standby of the store, and its log has diverged from the primary's; rebuild it, or take store_read out")
)

// Written is how far a primary has written its log.
type Written struct {
	Database string // the same on a server and its standbys, and on no other
	Timeline uint32
	LSN      uint64
	Since    uint64 // an LSN of this timeline, as early a one as is known
}

// Replayed is how far a standby has replayed the log of its primary.
type Replayed struct {
	Database string
	LSN      uint64
	Timeline uint32 // on which it was at the LSN At. Where it is now, standbys tell nobody without rights of their own
	At       uint64
}

const (
	database = `(SELECT system_identifier::text FROM pg_control_system()) || ' ' || current_database()`
	timeline = `('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint`

	// WrittenSQL asks a primary for the row of [ScanWritten]. A checkpoint of its timeline is behind where that began.
	WrittenSQL = `SELECT ` + database + `, ` + timeline + `, (pg_current_wal_lsn() - '0/0')::bigint,
		(CASE WHEN timeline_id = ` + timeline + ` THEN redo_lsn ELSE pg_current_wal_lsn() END - '0/0')::bigint FROM pg_control_checkpoint()`

	// ReplayedSQL asks a standby for the row of [ScanReplayed]. One that was promoted has all that it wrote. The point that recovery
	// has to reach is the last that has its timeline beside it: the checkpoint's is older.
	ReplayedSQL = `SELECT ` + database + `,
		(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0')::bigint,
		CASE WHEN pg_is_in_recovery() THEN min_recovery_end_timeline ELSE ` + timeline + ` END,
		(CASE WHEN pg_is_in_recovery() THEN min_recovery_end_lsn ELSE pg_current_wal_lsn() END - '0/0')::bigint FROM pg_control_recovery()`
)

// row is the answer of whichever driver was asked.
type row interface{ Scan(into ...any) error }

// ScanWritten reads the answer to [WrittenSQL].
func ScanWritten(r row) (w Written, err error) {
	err = r.Scan(&w.Database, &w.Timeline, &w.LSN, &w.Since)
	return w, err
}

// ScanReplayed reads the answer to [ReplayedSQL].
func ScanReplayed(r row) (c Replayed, err error) {
	err = r.Scan(&c.Database, &c.LSN, &c.Timeline, &c.At)
	return c, err
}

// Follows returns an error if the server that said this is no copy of the primary, which has to be asked later: [ErrNoCopy], or
// one that wraps [ErrDiverged]. After a promotion a standby that follows the new timeline passes, also while it knows nothing of
// that yet: on the old one it went no further than to where the new one begins.
func (c Replayed) Follows(primary Written) error {
	switch {
	case c.Database != primary.Database:
		return ErrNoCopy
	case c.LSN > primary.LSN:
		return fmt.Errorf("%w (it has log up to %s, and the primary has written up to %s)", ErrDiverged, lsn(c.LSN), lsn(primary.LSN))
	case c.Timeline > primary.Timeline, c.Timeline < primary.Timeline && c.At > primary.Since:
		return fmt.Errorf("%w (it was on timeline %d at %s, and the primary is on timeline %d since %s or before)",
			ErrDiverged, c.Timeline, lsn(c.At), primary.Timeline, lsn(primary.Since))
	}
	return nil
}

// lsn writes a position as PostgreSQL does.
func lsn(at uint64) string { return fmt.Sprintf("%X/%X", at>>32, uint32(at)) }
