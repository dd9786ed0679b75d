package sqlapi

import (
	"errors"
	"github.com/hookonce/hookonce/internal/testskip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// outside is what the server says of a claim outside a transaction.
const outside = "was claimed outside a transaction"

// script runs a program and returns the lines that it prints.
func (s *shop) script(t *testing.T, name string, args ...string) (lines []string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.dsn)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, stderr.String())
	}
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// A claim that commits by itself is warned of, in every way in which a client can send one; and nothing that
// commits claim and work together is, in whatever way it is sent.
func TestClaimOutsideATransaction(t *testing.T) {
	testskip.Long(t)
	t.Run("node", func(t *testing.T) {
		s := newShop(t)
		program, err := os.ReadFile("testdata/autocommit.mjs")
		if err != nil {
			t.Fatal(err)
		}
		dir := installed(t)
		if err := os.WriteFile(filepath.Join(dir, "autocommit.mjs"), program, 0o600); err != nil {
			t.Fatal(err)
		}
		want := []string{"text", "parameters", "prepared", "prepared again"}
		if diff := cmp.Diff(want, s.script(t, "node", filepath.Join(dir, "autocommit.mjs"))); diff != "" {
			t.Errorf("warned of (-want +got):\n%s", diff)
		}
	})
	t.Run("psycopg", func(t *testing.T) {
		want := []string{"autocommit, text", "autocommit, parameters", "autocommit, prepared"}
		if diff := cmp.Diff(want, newShop(t).script(t, "/usr/bin/python3", "testdata/autocommit.py")); diff != "" {
			t.Errorf("warned of (-want +got):\n%s", diff)
		}
	})
	t.Run("pgx", pgxOutsideATransaction)
	t.Run("psql", psqlOutsideATransaction)
}

// What a claim leaves in its transaction is gone after it, so other writers of claims on the same connection pay nothing for it.
func TestAClaimLeavesNoSettingBehind(t *testing.T) {
	d := newCaller(t, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ConnConfig.RuntimeParams["hookonce.autocommit_warning"] = "on"
	})
	is(d, d, true, "SELECT hookonce.claim('shop', 'evt_1')")
	d.warned(outside)
	is(d, d, "", "SELECT current_setting('hookonce.claiming', true)")
}

// Old applications have standard_conforming_strings off, and it holds for the texts in functions as well.
func TestClaimWhereBackslashesEscape(t *testing.T) {
	d := newCaller(t, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["standard_conforming_strings"] = "off"
		c.ConnConfig.RuntimeParams["hookonce.autocommit_warning"] = "on"
	})
	is(d, d, true, "SELECT hookonce.claim('shop', 'evt_1')")
	d.warned(outside)
	tx := d.begin()
	is(d, tx, true, "SELECT hookonce.claim('shop', 'evt_2')")
	if _, err := tx.Exec(t.Context(), "CREATE TABLE done (n int)"); err != nil {
		t.Fatal(err)
	}
	d.end(tx.Commit)
	d.warned("")
}

// The statement of docs/sql.md has claim and work in one. Where the work finds no row, it is an error, which takes the claim with
// it: an event that came before its customer is not done.
func TestWorkInOneStatementThatFindsNothing(t *testing.T) {
	s := newShop(t)
	statement := ""
	for _, b := range blocks(t) {
		if strings.HasPrefix(b, "WITH c AS") {
			statement = b
		}
	}
	if statement == "" {
		t.Fatal("docs/sql.md has no statement that begins with WITH c AS")
	}
	early := strings.ReplaceAll(statement, "cus_1", "cus_late")
	var pgErr *pgconn.PgError
	if _, err := s.pool.Exec(t.Context(), early); !errors.As(err, &pgErr) || pgErr.Code != "22012" {
		t.Errorf("without its customer: %v, want a division by zero", err)
	}
	mustExec(t, s.pool, "INSERT INTO customers VALUES ('cus_late')")
	for _, want := range []bool{true, false} { // the second is a copy
		var goOn bool
		var rest *int64
		if err := s.pool.QueryRow(t.Context(), early).Scan(&goOn, &rest); err != nil || goOn != want || (rest != nil) != want {
			t.Errorf("with its customer: %t, %v, %v, want %t", goOn, rest, err, want)
		}
	}
	var orders int
	if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM orders WHERE customer = 'cus_late'").Scan(&orders); err != nil || orders != 1 {
		t.Errorf("%d orders, %v, want 1", orders, err)
	}
}

// Claim and work in one statement, in the form of docs/sql.md: all rows of the work or, for a copy, none, also where one has
// to be waited for. In the WHERE of a table the claim would be asked for once for each of its rows.
func TestClaimInOneStatement(t *testing.T) {
	const once = "WITH c AS (SELECT hookonce.claim('shop', 'evt_1') AS go_on) "
	for name, statement := range map[string]string{
		"insert":           once + "INSERT INTO done SELECT n FROM work, c WHERE c.go_on AND n > 0",
		"update":           once + "UPDATE work SET n = n + 10 FROM c WHERE c.go_on AND n > 0",
		"insert, and lock": once + "INSERT INTO done SELECT n FROM work, c WHERE c.go_on AND n > 0 FOR UPDATE OF work",
	} {
		t.Run(name, func(t *testing.T) {
			d := newCaller(t)
			mustExec(t, d.Pool, "CREATE TABLE done (n int); CREATE TABLE work AS SELECT generate_series(1, 3) AS n")
			first := d.begin()
			if _, err := first.Exec(t.Context(), "UPDATE work SET n = n"); err != nil {
				t.Fatal(err)
			}
			changed := make(chan int64, 1)
			go func() {
				tag, err := d.Exec(t.Context(), statement)
				if err != nil {
					t.Error(err)
				}
				changed <- tag.RowsAffected()
			}()
			if name != "insert" {
				d.awaitWaiter()
			}
			d.end(first.Commit)
			if got := <-changed; got != 3 {
				t.Errorf("%d rows are changed, want 3", got)
			}
			if tag, err := d.Exec(t.Context(), statement); err != nil || tag.RowsAffected() != 0 {
				t.Errorf("a copy changes %d rows, %v", tag.RowsAffected(), err)
			}
		})
	}
}

func psqlOutsideATransaction(t *testing.T) {
	s := newShop(t)
	mustExec(t, s.pool, `CREATE TABLE work (key text); CREATE SCHEMA mine;
		CREATE FUNCTION mine.claim(k text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
			IF hookonce.claim('shop', k) THEN INSERT INTO work VALUES (k); END IF; RETURN true; END $$;
		CREATE FUNCTION mine.claim_in_sql(k text) RETURNS void LANGUAGE sql AS $$ INSERT INTO work SELECT k WHERE hookonce.claim('shop', k) $$;
		CREATE PROCEDURE mine.work(k text) LANGUAGE plpgsql AS $$ BEGIN IF hookonce.claim('shop', k) THEN INSERT INTO work VALUES (k); END IF; END $$`)
	for i, c := range []struct {
		text string
		want bool
	}{
		{`SELECT hookonce.claim('shop', '%', 'order.paid', '{"id": "evt_1"}');`, true},
		{`/* route:/in */ select go_on from hookonce.claim('shop', '%') AS go_on -- and off`, true},
		{`SELECT * FROM hookonce.claim_detail('shop', '%', digest => hookonce.digest('{}'))`, true},
		{`SELECT 1 WHERE hookonce.claim('shop', '%')`, true},
		{`SET search_path = hookonce; SELECT claim('shop', '%')`, false}, // one message: with the setting it is not alone
		{`BEGIN; SELECT hookonce.claim('shop', '%'); INSERT INTO work VALUES ('%'); COMMIT`, false},
		{"BEGIN;\nSELECT hookonce.claim('shop', '%');\nINSERT INTO work VALUES ('%');\nCOMMIT;", false},
		{"BEGIN;\nSELECT hookonce.claim('shop', '%');\nCOMMIT;", false},
		{`SELECT hookonce.claim('shop', '%'); INSERT INTO work VALUES ('%')`, false}, // one transaction, by the protocol
		{`INSERT INTO work SELECT '%' WHERE hookonce.claim('shop', '%')`, false},
		{`WITH c AS (SELECT hookonce.claim('shop', '%') AS go_on) INSERT INTO work SELECT '%' FROM c WHERE go_on`, false},
		{`SELECT CASE WHEN hookonce.claim('shop', '%') THEN nextval('shop_numbers') END FROM (SELECT 1) one`, false},
		{`DO $$ BEGIN IF hookonce.claim('shop', '%') THEN INSERT INTO work VALUES ('%'); END IF; END $$`, false},
		{`SELECT mine.claim('%')`, false},
		{`SELECT mine.claim_in_sql('%')`, false},
		{`CALL mine.work('%')`, false},
		{`SELECT hookonce.claim('shop', '')`, false}, // writes nothing
		{`SELECT hookonce.once('fee', '%')`, false},
		{"SET hookonce.autocommit_warning = off;\nSELECT hookonce.claim('shop', '%');", false},
	} {
		if strings.Contains(c.text, "shop_numbers") {
			mustExec(t, s.pool, "CREATE SEQUENCE shop_numbers")
		}
		text := strings.ReplaceAll(c.text, "%", "psql-"+string(rune('a'+i)))
		cmd := exec.Command("psql", "-X", "-v", "ON_ERROR_STOP=1", s.dsn)
		if strings.Contains(text, "\n") {
			cmd.Stdin = strings.NewReader(text) // a message for each
		} else {
			cmd.Args = append(cmd.Args, "-c", text) // one for all
		}
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), outside) != c.want {
			t.Errorf("%s: %v, want a warning: %v\n%s", text, err, c.want, out)
		}
	}
}

func pgxOutsideATransaction(t *testing.T) {
	const claim, work = "SELECT hookonce.claim('shop', $1, 'order.paid', $2::bytea)", "INSERT INTO work VALUES ($1)"
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			d := newCaller(t, func(c *pgxpool.Config) {
				c.ConnConfig.DefaultQueryExecMode = mode
				c.ConnConfig.RuntimeParams["hookonce.autocommit_warning"] = "on"
			})
			mustExec(t, d.Pool, "CREATE TABLE work (key text)")
			args := func(text, key string) []any {
				return map[string][]any{claim: {key, []byte(`{"id": "evt; (x)"}`)}, work: {key}}[text]
			}
			exec := func(texts ...string) func(key string) error {
				return func(key string) error {
					return pgx.BeginFunc(t.Context(), d, func(tx pgx.Tx) (err error) {
						for _, text := range texts {
							if err == nil {
								_, err = tx.Exec(t.Context(), text, args(text, key)...)
							}
						}
						return err
					})
				}
			}
			batch := func(texts ...string) func(key string) error {
				return func(key string) error {
					var b pgx.Batch
					for _, text := range texts {
						b.Queue(text, args(text, key)...)
					}
					return d.SendBatch(t.Context(), &b).Close()
				}
			}
			alone := func(key string) error {
				_, err := d.Exec(t.Context(), claim, args(claim, key)...)
				return err
			}
			for name, c := range map[string]struct {
				run  func(key string) error
				want string
			}{
				"alone":                   {alone, outside},
				"alone, known by now":     {alone, outside},
				"in a transaction":        {exec(claim, work), ""},
				"all of a transaction":    {exec(claim), ""},
				"batch of one":            {batch(claim), outside},
				"batch with the work":     {batch(claim, work), ""},
				"batch after the work":    {batch(work, claim), ""},
				"batch, BEGIN and COMMIT": {batch("BEGIN", claim, work, "COMMIT"), ""},
			} {
				if err := c.run(name); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				t.Log(name)
				d.warned(c.want)
			}
		})
	}
}
