package conformance_test

import (
	"flag"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/hookonce/hookonce/internal/conformance"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

var allSuites = flag.Bool("all", false, "run all suites on every engine with a fault, and tell which cases find it")

// planted is an engine with a fault, and the case that must find it.
type planted struct {
	fault pgproxy.Fault
	setup []string // statements that are run before, past the proxy
	found string
}

// rewrite makes a fault of statements by regular expressions and what takes the place of what they match.
func rewrite(pairs ...string) pgproxy.Fault {
	var patterns []*regexp.Regexp
	for i := 0; i < len(pairs); i += 2 {
		patterns = append(patterns, regexp.MustCompile(pairs[i]))
	}
	return pgproxy.Fault{Text: func(sql string) string {
		for i, p := range patterns {
			sql = p.ReplaceAllString(sql, pairs[2*i+1])
		}
		return sql
	}}
}

// tag makes a fault of what commands are answered with.
func tag(fault pgproxy.Fault, replace ...string) pgproxy.Fault {
	r := strings.NewReplacer(replace...)
	fault.Answer = func(m pgproto3.BackendMessage) pgproto3.BackendMessage {
		if done, is := m.(*pgproto3.CommandComplete); is {
			done.CommandTag = []byte(r.Replace(string(done.CommandTag)))
		}
		return m
	}
	return fault
}

const shadow = `CREATE SCHEMA shadow`

// plantedFaults are engines that lose or repeat events.
var plantedFaults = map[string]planted{
	"advisory locks are silent no-ops": {
		fault: pgproxy.NoOpLocks,
		setup: pgproxy.NoOpLocksSetup,
		found: "an advisory lock that is held is nobody else's",
	},
	"FOR UPDATE locks nothing": {
		fault: rewrite(`\bFOR (NO KEY )?UPDATE\b( OF \w+)?( SKIP LOCKED)?`, ``),
		found: "counters that many raise at once lose nothing",
	},
	"SKIP LOCKED skips nothing": {
		fault: rewrite(`\bFOR (NO KEY )?UPDATE\b( OF \w+)? SKIP LOCKED`, ``),
		found: "rows that somebody has locked are skipped",
	},
	"transactions are snapshots": {
		fault: rewrite(`(?i)^begin$`, `begin isolation level repeatable read`),
		found: "a statement sees what was committed before it",
	},
	"the clock is an hour ahead": {
		fault: rewrite(`\b(pg_catalog\.)?clock_timestamp\(\)`, `(pg_catalog.clock_timestamp() + interval '1 hour')`),
		found: "the clock is right, and goes forward",
	},
	"notifications do not arrive": {
		fault: pgproxy.Fault{Answer: func(m pgproto3.BackendMessage) pgproto3.BackendMessage {
			if _, is := m.(*pgproto3.NotificationResponse); is {
				return nil
			}
			return m
		}},
		found: "a notification comes after the commit",
	},
	"statements count rows that they did not change": {
		fault: tag(pgproxy.Fault{}, "UPDATE 0", "UPDATE 1", "INSERT 0 0", "INSERT 0 1", "DELETE 0", "DELETE 1"),
		found: "statements count the rows that they change",
	},
	"a COMMIT is answered and lost": {
		fault: tag(rewrite(`(?i)^commit$`, `rollback`), "ROLLBACK", "COMMIT"),
		found: "what is committed is there",
	},
	"a ROLLBACK commits": {
		fault: tag(rewrite(`(?i)^rollback$`, `commit`), "COMMIT", "ROLLBACK"),
		found: "what is rolled back is not",
	},
	"rolling back to a savepoint does nothing": {
		fault: rewrite(`(?i)^rollback to savepoint \w+$`, `SELECT 1`),
		found: "rolling back to a savepoint undoes what came after it",
	},
	"primary keys are not unique": {
		fault: rewrite(`,\s*PRIMARY KEY \([^)]*\)`, ``, `\bPRIMARY KEY\b`, ``, `ON CONFLICT \([^)]*\) DO NOTHING`, ``),
		found: "a key is unique",
	},
	"a sequence goes back": {
		fault: rewrite(`\bnextval\(`, `shadow.nextval(`),
		setup: []string{shadow, `CREATE FUNCTION shadow.nextval(s text) RETURNS bigint LANGUAGE plpgsql AS $$
			DECLARE n bigint := pg_catalog.nextval(s::regclass); BEGIN
				IF n % 5 = 0 THEN PERFORM setval(s::regclass, n - 3); END IF; RETURN n; END $$`},
		found: "a sequence only goes up",
	},
	"names are compared without case": {
		fault: rewrite(`\btext COLLATE "C"`, `text COLLATE shadow.folding`),
		setup: []string{shadow, `CREATE COLLATION shadow.folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`},
		found: "names that differ are different",
	},
	"long values are cut": {
		fault: pgproxy.Fault{Request: func(m pgproto3.FrontendMessage) {
			if bind, is := m.(*pgproto3.Bind); is {
				for i, v := range bind.Parameters {
					bind.Parameters[i] = v[:min(len(v), 1<<16)]
				}
			}
		}},
		found: "text and bytes are kept as they are",
	},
}

// Engines that get something wrong on which claims rest are found out, and by the sentence that says what it is.
func TestPlantedFaultsAreFound(t *testing.T) {
	testskip.Long(t)
	for name, p := range plantedFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			exec(t, dsn, p.setup...)
			target := conformance.Target{Kind: conformance.Postgres, URL: pgproxy.New(t, dsn, p.fault), Name: conformance.Prefix + "_planted", Cases: "^engine$"}
			if *allSuites {
				target.Cases = ""
			}
			report := examined(t, target)
			if report.Conforms() {
				t.Fatal("the engine conforms, it is said")
			}
			suites := map[string]int{}
			found := false
			for _, c := range report.Cases {
				if c.Result != conformance.Failed {
					continue
				}
				found = found || c.Name == "engine/"+p.found
				suite, _, _ := strings.Cut(c.Name, "/")
				suites[suite]++
				if !*allSuites {
					t.Log(c.Name, ": ", c.Reason)
				}
			}
			if !found {
				t.Errorf("%q did not find it", p.found)
			}
			t.Logf("%d of %d cases found it: %v; aborted: %s", report.Failed, report.Failed+report.Passed, suites, report.Aborted)
		})
	}
}

// The same way to an engine without a fault finds none.
func TestASoundEngineConforms(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	target := conformance.Target{Kind: conformance.Postgres, URL: pgproxy.New(t, dsn, rewrite()), Name: conformance.Prefix + "_sound", Cases: "^(engine|faults|history)$"}
	if *allSuites {
		target.Cases = ""
	}
	report := examined(t, target)
	if !report.Conforms() || report.Passed < 50 {
		t.Errorf("%+v", report)
	}
	if left := query[int](t, dsn, `SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'hookonce_conformance_%'`); left != 0 {
		t.Errorf("%d schemas are left", left)
	}
}
