package endtoend

import (
	"database/sql"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // for the store
)

// holdings is what the store of a run has in the end, held against both ends of it.
type holdings struct {
	Rows       int64 `json:"rows"`       // of events
	Lost       int64 `json:"lost"`       // events that were acknowledged and have no row
	Twice      int64 `json:"twice"`      // rows of events that have another one
	Strange    int64 `json:"strange"`    // rows of events that nobody sent
	Open       int64 `json:"open"`       // deliveries that are still to be made, or were given up
	Unfinished int64 `json:"unfinished"` // events that were acknowledged, and neither are to be delivered nor are on record as done
	DoneTwice  int64 `json:"done_twice"` // attempts on record as done although an earlier one of the event is
	AfterDone  int64 `json:"after_done"` // events that came in a later attempt than the one on record as done
}

// open opens the store beside the gateways, and says what the names of its tables begin with.
func (s *stage) open() (db *sql.DB, prefix string, err error) {
	driver, prefix := "sqlite", "hookonce_"
	if s.pg != nil {
		driver, prefix = "pgx", "hookonce."
	}
	db, err = sql.Open(driver, s.dsn)
	return db, prefix, err
}

// settle waits until nothing is to be delivered any more, or that takes too long: then the end of the run says so.
func (s *stage) settle(db *sql.DB, prefix string, within time.Duration) {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(look) {
		var open int
		if err := db.QueryRow(`SELECT count(*) FROM ` + prefix + `deliveries`).Scan(&open); err == nil && open == 0 {
			return
		}
	}
}

// holdings reads every event, delivery and attempt in the store.
func (a *accounts) holdings(db *sql.DB, prefix string) (*holdings, error) {
	h := &holdings{}
	rows, open, done := make([]bool, a.n), make([]bool, a.n), make([]uint32, a.n)
	each := func(query string, do func(n int, number uint32)) error {
		found, err := db.Query(query)
		if err != nil {
			return err
		}
		defer found.Close()
		for found.Next() {
			var source string
			var key sql.NullString // an event without a key is nobody's
			var number uint32
			if err := found.Scan(&source, &key, &number); err != nil {
				return err
			}
			n, ok := numberOf(key.String)
			if !ok || n >= a.n || sourceOf(n) != source {
				n = -1
			}
			do(n, number)
		}
		return found.Err()
	}
	if err := each(`SELECT source, key, 0 FROM `+prefix+`events`, func(n int, _ uint32) {
		h.Rows++
		switch {
		case n < 0:
			h.Strange++
		case rows[n]:
			h.Twice++
		default:
			rows[n] = true
		}
	}); err != nil {
		return nil, err
	}
	if err := each(`SELECT e.source, e.key, 0 FROM `+prefix+`deliveries d JOIN `+prefix+`events e ON e.id = d.event_id`, func(n int, _ uint32) {
		h.Open++
		if n >= 0 {
			open[n] = true
		}
	}); err != nil {
		return nil, err
	}
	if err := each(`SELECT e.source, e.key, a.token FROM `+prefix+`attempts a JOIN `+prefix+`events e ON e.id = a.event_id
		WHERE a.outcome = 'done' ORDER BY a.event_id, a.token`, func(n int, token uint32) {
		switch {
		case n < 0:
		case done[n] != 0:
			h.DoneTwice++
		default:
			done[n] = token
		}
	}); err != nil {
		return nil, err
	}
	for n := range a.n {
		if a.acked.has(n) && !rows[n] {
			h.Lost++
		}
		if a.acked.has(n) && rows[n] && !open[n] && done[n] == 0 {
			h.Unfinished++
		}
		if done[n] != 0 && a.attempts[n].Load() > done[n] {
			h.AfterDone++
		}
	}
	return h, nil
}
