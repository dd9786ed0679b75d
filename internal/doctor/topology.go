package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal/standby"
	"github.com/hookonce/hookonce/internal/pgstandby"
)

// topologyChecks ask the server who follows it.
func topologyChecks() []check[*server] {
	return []check[*server]{{"topology", topology}}
}

// followers are the servers that follow this one, as it sees them.
type followers struct {
	all, synchronous, hidden int64          // hidden: this role may not see how they follow
	names                    sql.NullString // of those that are synchronous
	wanted, commit           string         // synchronous_standby_names, synchronous_commit
	patroni                  bool           // Patroni is connected
	standby                  bool           // the server itself follows another
}

// topology says what is left of a commit when this server is lost.
func topology(ctx context.Context, s *server) ([]Finding, error) {
	var f followers
	err := s.db.QueryRowContext(ctx, `SELECT
		count(*) FILTER (WHERE application_name <> 'pg_basebackup'),
		count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
		count(*) FILTER (WHERE state IS NULL),
		string_agg(application_name, ', ' ORDER BY application_name) FILTER (WHERE sync_state IN ('sync', 'quorum')),
		current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
		EXISTS (SELECT FROM pg_stat_activity WHERE application_name ILIKE 'patroni%'), pg_is_in_recovery()
		FROM pg_stat_replication`).Scan(&f.all, &f.synchronous, &f.hidden, &f.names, &f.wanted, &f.commit, &f.patroni, &f.standby)
	if err != nil {
		return nil, err
	}
	if f.standby {
		return nil, nil // which is a finding of its own
	}
	found := f.judge()
	found.Text += f.way(s.conn)
	return one(found)
}

const waitForOne = "have commits wait for a standby: synchronous_mode: true in Patroni, synchronous_standby_names elsewhere"

func (f followers) judge() Finding {
	switch {
	case f.all == 0 && f.wanted == "":
		return good("one server, and no standby follows it: with its disk goes what was acknowledged since the last backup")
	case f.wanted != "" && f.all == f.hidden && f.hidden > 0:
		return doubt("GRANT pg_monitor TO this role, and look again", "%s, and this role may not see whether commits wait for one of them (%s)", plural(f.all, "standby"), f.wanted)
	case f.wanted != "" && f.synchronous == 0:
		return bad("start the standby, or see to it that another takes its place",
			"commits wait for a standby (synchronous_standby_names is %s), and none is there: nothing can be accepted", f.wanted)
	case f.synchronous == 0:
		return doubt(waitForOne, "%s, and commits wait for none: when one takes over, events are lost that were acknowledged a moment before, and claims with their effects",
			plural(f.all, "standby"))
	case f.commit == "local" || f.commit == "remote_write" || f.commit == "off":
		return doubt("ALTER ROLE ... SET synchronous_commit = on", "%s is synchronous, and synchronous_commit is %s: this role's commits do not wait until it has them on its disk",
			f.names.String, f.commit)
	}
	return good("commits wait for %s, of %s: nothing that was acknowledged is lost when it takes over", f.names.String, plural(f.all, "standby"))
}

// way says who finds the next primary.
func (f followers) way(c *pgx.ConnConfig) string {
	text := ""
	if f.patroni {
		text = "; Patroni looks after it"
	}
	if f.all == 0 && !f.patroni {
		return text
	}
	hosts := map[string]bool{fmt.Sprint(c.Host, ":", c.Port): true}
	for _, other := range c.Fallbacks {
		hosts[fmt.Sprint(other.Host, ":", other.Port)] = true
	}
	if len(hosts) == 1 {
		return text + "; the URL names one address, which has to lead to whoever is the primary"
	}
	return fmt.Sprintf("%s; the URL names %d servers, among which the primary is found", text, len(hosts))
}

// readChecks ask the standby that pages are read at.
func readChecks() []check[*reading] {
	return []check[*reading]{{"store_read", behind}}
}

// reading is the primary, and what is read beside it.
type reading struct {
	primary  *server
	standby  *sql.DB
	location config.Store
}

// examineStandby looks at store_read, if there is one.
func examineStandby(ctx context.Context, p Patient, primary *server) []Finding {
	if p.Config.StoreRead.Driver == "" {
		return nil
	}
	conn, err := pgx.ParseConfig(p.Config.StoreRead.Single())
	if err != nil {
		return []Finding{{Check: "store_read", Level: Fault, Text: "the URL cannot be read: " + oneLine(err), Advice: "correct store_read"}}
	}
	conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	db := stdlib.OpenDB(*conn)
	defer db.Close()
	db.SetMaxOpenConns(1)
	return run(ctx, &reading{primary, db, p.Config.StoreRead}, readChecks())
}

// behind holds the standby's position against the primary's, which is asked before, for what it had written then, and after, for
// what it can have written at all.
func behind(ctx context.Context, r *reading) ([]Finding, error) {
	before, err := r.primary.written(ctx)
	if err != nil {
		return nil, err
	}
	var recovers, receives bool
	var age sql.NullFloat64 // of the last commit that it has
	err = r.standby.QueryRowContext(ctx, `SELECT pg_is_in_recovery(), EXISTS (SELECT FROM pg_stat_wal_receiver),
		extract(epoch FROM now() - pg_last_xact_replay_timestamp())`).Scan(&recovers, &receives, &age)
	if err != nil {
		return one(r.away(err))
	}
	replayed, err := pgstandby.ScanReplayed(r.standby.QueryRowContext(ctx, pgstandby.ReplayedSQL))
	if err != nil {
		return one(r.away(err))
	}
	after, err := r.primary.written(ctx)
	if err != nil {
		return nil, err
	}
	follows := replayed.Follows(after)
	missing := before.LSN - min(before.LSN, replayed.LSN)
	since := time.Duration(age.Float64 * float64(time.Second)).Round(time.Second)
	switch {
	case errors.Is(follows, pgstandby.ErrNoCopy):
		return one(bad("name a standby of the store: hookonce serve does not start with this", "%s is another database than the store's, and no copy of it", r.location))
	case follows != nil:
		return one(bad("do so; until then pages are read at the primary", "%s: %s", r.location, follows))
	case !recovers:
		return one(doubt("name a standby, or leave store_read out", "%s is no standby: it takes writes itself, and nothing is spared by reading there", r.location))
	case missing == 0:
		return one(good("%s has everything", r.location))
	case !receives || since > standby.Farthest:
		return one(doubt("see why it does not follow", "%s is %d bytes of log behind, and its last commit is %v old: pages are read at the primary while it is more than %v behind",
			r.location, missing, since, standby.Farthest))
	}
	return one(good("%s is %d bytes of log behind", r.location, missing))
}

// away says that the standby cannot be asked.
func (r *reading) away(err error) Finding {
	return doubt("start it, or correct store_read; until then pages are read at the primary", "%s cannot be asked: %s", r.location, oneLine(err))
}

// written asks a primary where it is.
func (s *server) written(ctx context.Context) (pgstandby.Written, error) {
	return pgstandby.ScanWritten(s.db.QueryRowContext(ctx, pgstandby.WrittenSQL))
}
