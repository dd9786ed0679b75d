package sqlapi

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// blocks are the pieces of SQL in docs/sql.md.
func blocks(t *testing.T) (all []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?s)```sql\n([^`]*)```").FindAllStringSubmatch(string(page), -1) {
		all = append(all, found[1])
	}
	return all
}

// grants are what the page tells to grant to the role.
func grants(t *testing.T, role string) string {
	t.Helper()
	for _, block := range blocks(t) {
		if strings.Contains(block, "TO "+role+";") {
			return block
		}
	}
	t.Fatalf("the page tells to grant nothing to %s", role)
	return ""
}

// What the page shows works, in its order, twice: the second time the event is a copy.
func TestPageWorks(t *testing.T) {
	s := newShop(t)
	mustExec(t, s.pool, "CREATE TABLE payments (source text, event_id text, payment text, cents bigint)") // of the program behind the gateway
	for range 2 {
		for _, block := range blocks(t) {
			if !strings.Contains(block, "GRANT") && block != leased(t) {
				mustExec(t, s.pool, block)
			}
		}
	}
	var done int
	err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM hookonce.claims WHERE state = 'done'").Scan(&done)
	if err != nil || done != 3 { // two of the page's shop, and that of the program behind the gateway
		t.Errorf("%d events are done, %v", done, err)
	}
}

// leased is what the page shows of work under a lease.
func leased(t *testing.T) string {
	t.Helper()
	for _, block := range blocks(t) {
		if strings.Contains(block, "hookonce.complete(") {
			return block
		}
	}
	t.Fatal("the page shows nothing of work under a lease")
	return ""
}

// Under a lease, in the page's order, effects and outcome commit together: after that a copy is a duplicate, and who dies before
// it leaves nothing that the next one runs into.
func TestPageOfLeases(t *testing.T) {
	for name, tt := range map[string]struct {
		block   string
		want    []string
		effects int64
	}{
		"commits": {leased(t), []string{"accepted 1", "duplicate 1"}, 1},
		"dies":    {strings.NewReplacer("COMMIT", "ROLLBACK", ", 60)", ", -1)").Replace(leased(t)), []string{"accepted 1", "accepted 2"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newCaller(t)
			conn, err := d.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			var got []string
			for line := range strings.Lines(tt.block) {
				statement, _, _ := strings.Cut(line, "--")
				if strings.HasPrefix(statement, "SELECT verdict, token") {
					got = append(got, verdict(d, conn, statement))
				} else if _, err := conn.Exec(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			is(d, conn, tt.effects, "SELECT count(*) FROM hookonce.effects")
			if name == "dies" { // and the next one has the token 2
				tx := d.begin()
				is(d, tx, true, "SELECT hookonce.enqueue('mail.receipt', '{}', 'shop', 'evt_3') > 0")
				if _, err := tx.Exec(t.Context(), "SELECT hookonce.complete('shop', 'evt_3', 2)"); err != nil {
					t.Fatal(err)
				}
				d.end(tx.Commit)
			}
			is(d, conn, "done", "SELECT state FROM hookonce.lookup('shop', 'evt_3')")
		})
	}
}

// verdict asks for a verdict and a token.
func verdict(d *caller, on rower, query string) string {
	d.t.Helper()
	var verdict string
	var token int64
	if err := on.QueryRow(d.t.Context(), query).Scan(&verdict, &token); err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	return fmt.Sprint(verdict, " ", token)
}

// as connects as another role.
func as(t *testing.T, dsn, role string) *pgxpool.Pool {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return connect(t, u.String())
}

// every is one call of each function, in an order in which all succeed.
const every = `SELECT hookonce.claim('shop', 'evt_1', 'paid', '{}'); SELECT * FROM hookonce.claim_detail('shop', 'evt_2');
	SELECT hookonce.failed('shop', 'evt_3', 'declined'); SELECT * FROM hookonce.lease('shop', 'evt_3', 60);
	SELECT hookonce.extend('shop', 'evt_3', 2, 60); SELECT hookonce.fail('shop', 'evt_3', 2, 'declined');
	SELECT * FROM hookonce.lease('shop', 'evt_3', 60); SELECT hookonce.complete('shop', 'evt_3', 3);
	SELECT * FROM hookonce.lookup('shop', 'evt_3'); SELECT hookonce.once('fee', 'payout'); SELECT hookonce.newer('order', 1);
	SELECT hookonce.transition('order', '', 'paid'); SELECT hookonce.enqueue('mail', '{}', 'shop', 'evt_1');
	SELECT hookonce.effect_key('shop', 'evt_1', 'mail'), hookonce.digest('{}')`

// The page's grants are enough for every function, and no function does more than its caller may.
func TestRights(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin := connect(t, dsn)
	migrate(t, admin, "hookonce")
	mustExec(t, admin, "CREATE ROLE shop_app LOGIN; CREATE ROLE janitor LOGIN; CREATE ROLE stranger LOGIN")
	mustExec(t, admin, strings.ReplaceAll(grants(t, "shop"), "shop", "shop_app")+grants(t, "janitor"))
	mustExec(t, admin, "GRANT USAGE ON SCHEMA hookonce TO stranger")
	mustExec(t, as(t, dsn, "shop_app"), every)
	mustExec(t, as(t, dsn, "janitor"), `SELECT hookonce.purge(now(), 10, kind) FROM unnest('{events,failed,once,versions,states,effects}'::text[]) AS kind`)
	stranger := &caller{Pool: as(t, dsn, "stranger"), t: t}
	for _, call := range []string{"claim('shop', 'evt_9')", "failed('shop', 'evt_9')", "newer('order', 2)", "enqueue('mail', '{}', 'shop')", "purge(now())"} {
		refuses(stranger, stranger, "42501", "SELECT hookonce."+call)
	}
	mustExec(t, admin, "DROP OWNED BY shop_app, janitor, stranger; DROP ROLE shop_app, janitor, stranger")
}

// What lies in front of the system's own names in the caller's search path is not what functions mean.
func TestSearchPathMeansNothing(t *testing.T) {
	d := newCaller(t)
	conn, err := d.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, statement := range []string{
		"CREATE SCHEMA trap", "CREATE TABLE trap.claims (source text, key text, state text)",
		"CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2000-01-01' $$",
		"CREATE FUNCTION trap.starts_with(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT 1/0 = 1 $$",
		"CREATE FUNCTION trap.pg_try_advisory_xact_lock(bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT 1/0 = 1 $$",
		"CREATE FUNCTION trap.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT ''::bytea $$",
		"SET search_path = trap, pg_catalog", every,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	is(d, d, true, "SELECT bool_and(updated_at > '2020-01-01') FROM hookonce.claims")
	is(d, d, int64(0), "SELECT count(*) FROM trap.claims")
}

// Texts of any collation can be given: the tables' own is what counts.
func TestCollationMeansNothing(t *testing.T) {
	d := newCaller(t)
	mustExec(t, d.Pool, `CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)`)
	for _, collation := range []string{"POSIX", "loose"} {
		mustExec(t, d.Pool, `CREATE TABLE `+collation+` (name text COLLATE "`+collation+`"); INSERT INTO `+collation+` VALUES ('Evt');
			SELECT hookonce.claim(name, name) FROM `+collation+`; SELECT hookonce.claim(name, 'evt') FROM `+collation+`;
			SELECT hookonce.failed(name, name || 2, name) FROM `+collation+`; SELECT l.* FROM `+collation+`, hookonce.lease(name, name || 2, 60) l;
			SELECT hookonce.extend(name, name || 2, 2, 60) FROM `+collation+`; SELECT hookonce.complete(name, name || 2, 2) FROM `+collation+`;
			SELECT l.* FROM `+collation+`, hookonce.lookup(name, name) l; SELECT hookonce.once(name, name) FROM `+collation+`;
			SELECT hookonce.newer(name, 1), hookonce.newer(name, 1, CAST('time' AS text) COLLATE "`+collation+`"), hookonce.transition(name, '', name), hookonce.transition(name, name, lower(name)) FROM `+collation+`;
			SELECT hookonce.enqueue(name, name, name, name, name), hookonce.effect_key(name, name, name) FROM `+collation)
		is(d, d, int64(4), "SELECT count(*) FROM hookonce.claims WHERE state = 'done'")
		for _, anew := range []bool{true, false} { // collates like nothing, and is something
			is(d, d, anew, "SELECT hookonce.claim(name, E'\\u200b') FROM "+collation)
		}
		is(d, d, "evt", "SELECT state FROM hookonce.states")
		is(d, d, true, "SELECT hookonce.key_lock(name, name) = hookonce.key_lock('Evt', 'Evt') FROM "+collation)
		mustExec(t, d.Pool, "TRUNCATE hookonce.claims, hookonce.versions, hookonce.states, hookonce.effects")
	}
}

// A schema of another name has functions that know no other.
func TestSchemaOfAnotherName(t *testing.T) {
	pool := connect(t, pgtest.DSN(t))
	migrate(t, pool, "select")
	mustExec(t, pool, strings.ReplaceAll(every, "hookonce.", `"select".`))
	var stray int
	err := pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_proc WHERE prosrc LIKE '%hookonce.%' AND pronamespace = 'select'::regnamespace").Scan(&stray)
	if err != nil || stray != 0 {
		t.Errorf("%d functions name another schema, %v", stray, err)
	}
}

// \df+ explains every function.
func TestEveryFunctionIsDescribed(t *testing.T) {
	d := newCaller(t)
	is(d, d, "", `SELECT coalesce(string_agg(p.oid::regprocedure::text, ', '), '') FROM pg_proc p
		WHERE pronamespace = 'hookonce'::regnamespace AND coalesce(obj_description(p.oid, 'pg_proc'), '') = ''`)
	is(d, d, "", `SELECT coalesce(string_agg(proname, ', '), '') FROM pg_proc
		WHERE pronamespace = 'hookonce'::regnamespace AND (prosecdef OR (prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql') AND proconfig IS NULL))`)
}
