package doctor

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ddl"
)

// server is a Postgres server through one connection.
type server struct {
	*store
	conn *pgx.ConnConfig
	dsn  string
}

// examinePostgres connects and asks.
func examinePostgres(ctx context.Context, p Patient) []Finding {
	s, err := openPostgres(p)
	if err == nil {
		defer s.db.Close()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err = s.db.PingContext(ctx)
	}
	if err != nil {
		return []Finding{{Check: "store", Level: Fault, Text: p.Config.Store.String() + " cannot be reached: " + oneLine(err),
			Advice: "start the database, or correct --store"}}
	}
	found := []Finding{{Check: "store", Level: OK, Text: p.Config.Store.String() + " answers"}}
	found = append(found, run(ctx, s, postgresChecks())...)
	found = append(found, run(ctx, s, topologyChecks())...)
	found = append(found, examineStandby(ctx, p, s)...)
	return append(found, run(ctx, s.store, tableChecks())...)
}

// openPostgres prepares one connection that works behind any pooler.
func openPostgres(p Patient) (*server, error) {
	prefix, err := ddl.Prefix(ddl.Postgres, p.Config.Schema)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ParseConfig(p.Config.Store.Single())
	if err != nil {
		return nil, err
	}
	asked := *conn
	conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	db := stdlib.OpenDB(*conn)
	db.SetMaxOpenConns(1)
	return &server{dsn: p.Config.Store.DSN, conn: &asked, store: &store{
		db: db, dialect: ddl.Postgres, schema: p.Config.Schema, prefix: prefix, now: p.Now,
		serves: p.serves(), creates: p.Config.Migrate, sources: p.sources(), names: p.destinations(),
		cell: p.Config.Cell, cellsMap: int64(p.Config.CellsMap), placeholder: "$1::timestamptz", at: func(t time.Time) any { return t },
	}}, nil
}

// postgresChecks ask the server.
func postgresChecks() []check[*server] {
	return []check[*server]{
		{"server", serverVersion},
		{"primary", primary},
		{"encoding", encoding},
		{"clock", skew},
		{"isolation", isolation},
		{"locks", locks},
		{"cells", cellMap},
		{"durability", durability},
		{"autovacuum", autovacuum},
		{"pooler", pooler},
		{"connections", connections},
		{"transactions", transactions},
		{"rights", rights},
	}
}

// setting reads one of the server's settings, as this role has it.
func (s *server) setting(ctx context.Context, name string) (value string, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT current_setting($1)", name).Scan(&value)
	return value, err
}

func serverVersion(ctx context.Context, s *server) ([]Finding, error) {
	number, err := s.setting(ctx, "server_version_num")
	if err != nil {
		return nil, err
	}
	const oldest = 130000
	n, err := strconv.Atoi(number)
	if err == nil && n < oldest {
		return one(bad("use PostgreSQL 13 or newer", "PostgreSQL %d.%d is older than what hookonce is tested with", n/10000, n%10000))
	}
	if err == nil && n < 140000 && s.serves {
		return one(doubt("use PostgreSQL 14 or newer for a gateway", "PostgreSQL %d.%d can make no partitions as a gateway does: what is past its retention is deleted row by row", n/10000, n%10000))
	}
	return one(good("PostgreSQL %d.%d", n/10000, n%10000))
}

func primary(ctx context.Context, s *server) ([]Finding, error) {
	var standby bool
	err := s.db.QueryRowContext(ctx, "SELECT pg_is_in_recovery()").Scan(&standby)
	if err != nil {
		return nil, err
	}
	readOnly, err := s.setting(ctx, "default_transaction_read_only")
	switch {
	case err != nil:
		return nil, err
	case standby:
		return one(bad("connect to the primary: name all servers and add target_session_attrs=read-write to the URL", "this server is a standby and takes no writes"))
	case readOnly == "on":
		return one(bad("ALTER ROLE ... SET default_transaction_read_only = off", "transactions of this role are read-only"))
	}
	return one(good("it takes writes"))
}

func encoding(ctx context.Context, s *server) ([]Finding, error) {
	name, err := s.setting(ctx, "server_encoding")
	if err == nil && name != "UTF8" {
		return one(bad("use a database with ENCODING 'UTF8'", "the database's encoding is %s: keys that it cannot write are refused, and their events with them", name))
	}
	return []Finding{good("%s", name)}, err
}

// How far the clocks may be apart before leases are handled by two, and how far before they surely are.
const (
	someSkew = time.Second
	muchSkew = 10 * time.Second
)

// skew compares the clocks, to within half of the time that asking took.
func skew(ctx context.Context, s *server) ([]Finding, error) {
	var there time.Time
	before := s.now()
	err := s.db.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&there)
	if err != nil {
		return nil, err
	}
	within := s.now().Sub(before) / 2
	return one(apart(there.Sub(before.Add(within)).Abs(), within))
}

// apart judges how far two clocks are apart, known to within some time.
func apart(off, within time.Duration) Finding {
	const advice = "run NTP on both machines: leases (of the library, of relays and of the gateway), ages for purges, and signed times go by these clocks"
	const text = "this machine's clock and the database's are %v apart"
	off, within = off.Round(time.Millisecond), within.Round(time.Millisecond)
	switch {
	case off > muchSkew+within:
		return bad(advice, text, off)
	case off > someSkew+within:
		return doubt(advice, text, off)
	}
	return good("within %v of the database's", off+within)
}

func isolation(ctx context.Context, s *server) ([]Finding, error) {
	level, err := s.setting(ctx, "default_transaction_isolation")
	if err == nil && level != "read committed" {
		return one(doubt("ALTER ROLE ... SET default_transaction_isolation = 'read committed', or try transactions again that fail with SQLSTATE 40001",
			"transactions are %s by default: copies that come at once fail with a serialization error instead of waiting", level))
	}
	return []Finding{good("%s", level)}, err
}

// locks tries whether advisory locks lock, on which purges beside replays rest. It may need a second connection.
func locks(ctx context.Context, s *server) ([]Finding, error) {
	s.db.SetMaxOpenConns(2)
	defer s.db.SetMaxOpenConns(1)
	look := ddl.Sound
	if !s.serves {
		look = ddl.SoundForClaims
	}
	if err := look(ctx, s.db); err != nil {
		return one(bad("keep nothing there that may not be lost; docs/storage.md tells which engines conform", "%s", oneLine(err)))
	}
	return one(good("advisory locks hold"))
}

// cellMap holds the map of cells in the file against the one that counts.
func cellMap(ctx context.Context, s *server) ([]Finding, error) {
	var number sql.NullInt64
	if s.cell == "" {
		return nil, nil
	}
	err := s.db.QueryRowContext(ctx, `SELECT max(number) FROM `+s.prefix+`cell_fence`).Scan(&number)
	const look = "write what 'hookonce cells status --yaml' shows into the file"
	switch {
	case err != nil:
		return nil, err
	case number.Int64 > s.cellsMap:
		return one(doubt(look, "the file has cells_map %d, and map %d is in the store, which is what counts", s.cellsMap, number.Int64))
	case number.Int64 < s.cellsMap:
		return one(doubt("start a gateway, or have it read the file; then look at 'hookonce cells status'",
			"the file has cells_map %d, and the newest map in the store is %d: it is not introduced yet", s.cellsMap, number.Int64))
	}
	return []Finding{good("cell %s goes by map %d, which is that of the file", s.cell, number.Int64)}, nil
}

// durability looks at what makes a commit survive a crash.
func durability(ctx context.Context, s *server) (found []Finding, _ error) {
	for _, c := range []struct{ name, fault, advice string }{
		{"fsync", "a crash of the machine can damage the whole database", "set fsync = on in postgresql.conf"},
		{"full_page_writes", "a crash of the machine can damage pages that were being written", "set full_page_writes = on in postgresql.conf"},
		{"synchronous_commit", "a crash forgets the last commits, whose events were acknowledged; the gateway turns it on for itself, the library does not",
			"ALTER ROLE ... SET synchronous_commit = on"},
	} {
		value, err := s.setting(ctx, c.name)
		if err != nil {
			return found, err
		}
		if value == "off" {
			found = append(found, bad(c.advice, "%s is off: %s", c.name, c.fault))
		}
	}
	if len(found) == 0 {
		found = append(found, good("what is committed survives a crash"))
	}
	return found, nil
}

func autovacuum(ctx context.Context, s *server) ([]Finding, error) {
	value, err := s.setting(ctx, "autovacuum")
	if err == nil && value != "on" {
		return one(doubt("set autovacuum = on in postgresql.conf", "autovacuum is %s: purged rows keep their room, and the tables only grow", value))
	}
	return []Finding{good("%s", value)}, err
}

// pooler finds out whether the server's process is the one that the connection was told of, which poolers
// make up.
func pooler(ctx context.Context, s *server) ([]Finding, error) {
	pooled, err := s.pooled(ctx)
	mode := s.conn.DefaultQueryExecMode
	switch {
	case err != nil:
		return nil, err
	case !pooled:
		return one(good("none: the connection leads to the server itself"))
	case mode == pgx.QueryExecModeCacheStatement:
		return one(doubt("add default_query_exec_mode=exec to the URL, unless the pooler keeps track of prepared statements (PgBouncer 1.21, max_prepared_statements)",
			"a pooler stands before the server, and statements are prepared by name: the next transaction may meet a server that does not know them"))
	}
	return one(good("a pooler stands before the server; the query mode %s works with it, and other processes' work is found by polling", mode))
}

func (s *server) pooled(ctx context.Context) (bool, error) {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	var there, told uint32
	err = c.Raw(func(driver any) error {
		conn := driver.(*stdlib.Conn).Conn()
		told = conn.PgConn().PID()
		return conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&there)
	})
	return there != told, err
}

// How many connections a gateway opens unless the URL says otherwise, and besides: one that listens, those on which it looks at the
// library's tables, and those on which it stores what it observes.
const (
	gatewayConns = 8
	listenConns  = 1
	libraryConns = 2
	observeConns = 2
)

// connections holds the pool's size against what the server, the database and the role allow.
func connections(ctx context.Context, s *server) ([]Finding, error) {
	if pooled, err := s.pooled(ctx); err != nil || pooled {
		return []Finding{good("the pooler bounds them")}, err
	}
	var allowed, used int
	err := s.db.QueryRowContext(ctx, `SELECT
		least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
			nullif((SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), -1),
			nullif((SELECT datconnlimit FROM pg_database WHERE datname = current_database()), -1)),
		(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())`).Scan(&allowed, &used)
	if err != nil {
		return nil, err
	}
	wants := s.wantedConns()
	switch {
	case wants > allowed:
		return one(bad("lower pool_max_conns in the URL, or raise max_connections", "a process wants up to %d connections, and the server allows %d", wants, allowed))
	case wants > allowed-used:
		return one(doubt("lower pool_max_conns in the URL, or raise max_connections", "a process wants up to %d connections; of %d that the server allows %d are in use", wants, allowed, used))
	}
	return one(good("a process wants up to %d of %d; %d are in use", wants, allowed, used))
}

// wantedConns is how many connections a process opens at most. The claims of mode: idempotency have a pool of their own, as large as
// pgx makes it here, and one that listens.
func (s *server) wantedConns() int {
	size := 0
	if u, err := url.Parse(s.dsn); err == nil {
		size, _ = strconv.Atoi(u.Query().Get("pool_max_conns"))
	}
	n := cmp.Or(size, gatewayConns) + listenConns
	if !s.serves {
		return n // a program with the library
	}
	n += libraryConns
	if s.runs(config.Observe) {
		n += observeConns
	}
	if s.runs(config.Idempotent) {
		n += cmp.Or(size, max(4, runtime.NumCPU())) + listenConns
	}
	return n
}

// transactions says for how long one is held whose machine has vanished, and with it the key of its event. A gateway has none open
// while an application works, and the setting is that of a role: it is the application's that is asked about.
func transactions(ctx context.Context, s *server) ([]Finding, error) {
	if s.serves || !s.migrated(ctx) {
		return nil, nil
	}
	limit, err := s.setting(ctx, "idle_in_transaction_session_timeout")
	switch {
	case err != nil:
		return nil, err
	case limit == "0":
		return one(good("none is ended because its program is silent (idle_in_transaction_session_timeout is 0): a machine that vanishes " +
			"holds its events until TCP keepalives give up, about two hours by default; docs/storage.md tells what to set"))
	}
	return one(good("one whose program is silent is ended after %s, and its event is free", limit))
}

// rights finds what this role cannot use. A gateway that lacks the sequence does not start.
func rights(ctx context.Context, s *server) (found []Finding, err error) {
	name := cmp.Or(s.schema, ddl.DefaultName)
	var there, usable, creatable bool
	err = s.db.QueryRowContext(ctx, `SELECT n.oid IS NOT NULL, coalesce(has_schema_privilege(n.oid, 'USAGE'), false), has_database_privilege(current_database(), 'CREATE')
		FROM (SELECT) AS nothing LEFT JOIN pg_namespace n ON n.nspname = $1`, name).Scan(&there, &usable, &creatable)
	const advice = `GRANT what the program needs: docs/operating.md lists it under "Rights in the database"`
	switch {
	case err != nil:
		return nil, err
	case !there && s.serves && s.creates && !creatable:
		return one(bad("run `hookonce migrate` as a role that may make tables, and GRANT this one what it needs", "there is no schema %s, and this role may not create it: `hookonce serve` will not start", name))
	case !there:
		return nil, nil // which is a finding of its own
	case !usable:
		return one(bad(advice, "this role may not use the schema %s", name))
	case !s.migrated(ctx):
		return nil, nil
	}
	if found, err = s.lacking(ctx, name, advice); err == nil && len(found) == 0 {
		text := "this role may use all tables and sequences"
		if s.serves {
			text = "this role may do all that the gateway does"
		}
		found = append(found, good("%s", text))
	}
	return found, err
}

// wanted is what this role is to be allowed on each table: for a gateway what docs/operating.md lists for its modes, else everything
// on every table of the schema, because nobody knows what the program does.
func (s *server) wanted() (rights string) {
	if !s.serves {
		return `SELECT t.relname, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
			WHERE n.nspname = $1 AND t.relkind IN ('r', 'p') AND NOT t.relispartition AND t.relname <> 'goose_db_version'`
	}
	all := []struct{ tables, verbs string }{
		{"events,deliveries,lanes,newest,twins,sightings,audits,answers,gateways,tallies,tally_hours,tally_writers,alerts,alert_notices,reconcile_missing", "SELECT,INSERT,UPDATE,DELETE"},
		{"bodies,attempts,pauses,alert_silences,alert_records", "SELECT,INSERT,DELETE"},
		{"reconcile_marks", "SELECT,INSERT,UPDATE"},
		{"kept_bodies,kept_attempts", "SELECT,DELETE"},
		{"reconciliations,cell_fence", "SELECT"},
	}
	if s.cell != "" {
		all = append(all, struct{ tables, verbs string }{"cell_fence", "INSERT,UPDATE"}, struct{ tables, verbs string }{"cell_maps,cell_confirmations", "SELECT,INSERT"})
	}
	if s.runs(config.Observe) {
		all = append(all, struct{ tables, verbs string }{"observations", "SELECT,INSERT,DELETE"})
	}
	if s.runs(config.Idempotent) {
		all = append(all, struct{ tables, verbs string }{"claims,responses", "SELECT,INSERT,UPDATE,DELETE"})
	}
	var parts []string
	for _, r := range all {
		parts = append(parts, fmt.Sprintf("SELECT tab, unnest(string_to_array('%s', ',')) FROM unnest(string_to_array('%s', ',')) AS tab", r.verbs, r.tables))
	}
	return strings.Join(parts, " UNION ALL ")
}

// lacking finds tables, and sequences apart from those of columns, whose rights come with the table's. Partitions are used through
// their table.
func (s *server) lacking(ctx context.Context, name, advice string) (found []Finding, err error) {
	for _, q := range []struct {
		query string
		judge func(advice, format string, args ...any) Finding
		text  string
	}{
		{`SELECT string_agg(r.tab || ' (' || r.verb || ')', ', ' ORDER BY r.tab, r.verb)
			FROM (` + s.wanted() + `) AS r (tab, verb) JOIN pg_class t ON t.relname = r.tab JOIN pg_namespace n ON n.oid = t.relnamespace
			WHERE n.nspname = $1 AND NOT has_table_privilege(t.oid, r.verb)`,
			s.needed, "this role may not do everything: %s"},
		{`SELECT string_agg(t.relname || ' (USAGE)', ', ' ORDER BY t.relname)
			FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
			WHERE n.nspname = $1 AND CASE WHEN t.relkind = 'S' THEN NOT has_sequence_privilege(t.oid, 'USAGE') END
			AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = t.oid AND d.deptype = 'i')`,
			s.needed, "this role may not use the sequence %s, without which `hookonce serve` does not start"},
	} {
		var lacking sql.NullString
		if err := s.db.QueryRowContext(ctx, q.query, name).Scan(&lacking); err != nil {
			return found, err
		}
		if lacking.Valid {
			found = append(found, q.judge(advice, q.text, lacking.String))
		}
	}
	return found, nil
}

// needed is a fault for a gateway, and nothing that other programs use.
func (s *server) needed(advice, format string, args ...any) Finding {
	if s.serves {
		return bad(advice, format, args...)
	}
	return doubt(advice, format, args...)
}
