package sqlapi

import (
	"testing"

	"github.com/hookonce/hookonce/internal/testskip"
)

// Whatever a function changes in a transaction that stays open, others are told that the key is busy, and
// none of them waits for a row: no setting of theirs would bound that.
func TestHeldKeysAreBusy(t *testing.T) {
	for name, tt := range map[string]struct{ before, change string }{
		"claim":    {"", "SELECT hookonce.claim('shop', 'evt_1')"},
		"redrive":  {"SELECT hookonce.failed('shop', 'evt_1')", "SELECT hookonce.claim('shop', 'evt_1')"},
		"failed":   {"", "SELECT hookonce.failed('shop', 'evt_1')"},
		"lease":    {"", "SELECT * FROM hookonce.lease('shop', 'evt_1', 60)"},
		"complete": {"SELECT * FROM hookonce.lease('shop', 'evt_1', -1)", "SELECT hookonce.complete('shop', 'evt_1', 1)"},
		"fail":     {"SELECT * FROM hookonce.lease('shop', 'evt_1', -1)", "SELECT hookonce.fail('shop', 'evt_1', 1)"},
		"extend":   {"SELECT * FROM hookonce.lease('shop', 'evt_1', -1)", "SELECT hookonce.extend('shop', 'evt_1', 1, 60)"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newCaller(t)
			if tt.before != "" {
				mustExec(t, d.Pool, tt.before)
			}
			owner := d.begin()
			if _, err := owner.Exec(t.Context(), tt.change); err != nil {
				t.Fatal(err)
			}
			for _, function := range []string{"claim_detail('shop', 'evt_1', wait => '20 ms')", "lease('shop', 'evt_1', 60, wait => '20 ms')"} {
				other := d.begin()
				if _, err := other.Exec(t.Context(), "SET LOCAL statement_timeout = '10s'"); err != nil {
					t.Fatal(err)
				}
				is(d, other, "busy", "SELECT verdict FROM hookonce."+function)
				d.end(other.Rollback)
			}
		})
	}
}

// Nor does whoever had a lease wait for ever for the one who took over and keeps its transaction open.
func TestOutcomesDoNotWaitForEver(t *testing.T) {
	testskip.Long(t)
	d := newCaller(t)
	mustExec(t, d.Pool, "SELECT * FROM hookonce.lease('shop', 'evt_1', -1)")
	owner := d.begin()
	is(d, owner, true, "SELECT hookonce.claim('shop', 'evt_1')")
	for _, function := range []string{"complete('shop', 'evt_1', 1)", "fail('shop', 'evt_1', 1)", "extend('shop', 'evt_1', 1, 60)"} {
		other := d.begin()
		if _, err := other.Exec(t.Context(), "SET LOCAL statement_timeout = '10s'"); err != nil {
			t.Fatal(err)
		}
		refuses(d, other, "55P03", "SELECT hookonce."+function)
		d.end(other.Rollback)
	}
	d.end(owner.Commit)
	refuses(d, d, "WH001", "SELECT hookonce.complete('shop', 'evt_1', 1)")
}

// What failed goes up to the limit, of several sources together.
func TestPurgeOfWhatFailed(t *testing.T) {
	d := newCaller(t)
	mustExec(t, d.Pool, "SELECT hookonce.failed(source, key) FROM (VALUES ('mail', 'evt_1'), ('shop', 'evt_1'), ('shop', 'evt_2')) AS f (source, key)")
	mustExec(t, d.Pool, "UPDATE hookonce.claims SET updated_at = now() - interval '91 days'")
	for _, gone := range []int{2, 1, 0} {
		is(d, d, gone, "SELECT hookonce.purge(now() - interval '90 days', 2, 'failed')")
	}
}

// What is done and old goes, with its response; nothing else does.
func TestPurgeTakesResponsesAlong(t *testing.T) {
	d := newCaller(t)
	for _, key := range []string{"old_1", "old_2", "new", "failed"} {
		mustExec(t, d.Pool, "INSERT INTO hookonce.responses (source, key, token, status, header, body) VALUES ('shop', $1, 1, 200, '', '')", key)
	}
	mustExec(t, d.Pool, "SELECT hookonce.claim('shop', k) FROM unnest('{old_1,old_2,new}'::text[]) AS k")
	mustExec(t, d.Pool, "SELECT hookonce.failed('shop', 'failed')")
	mustExec(t, d.Pool, "UPDATE hookonce.claims SET updated_at = now() - interval '91 days' WHERE key <> 'new'")
	is(d, d, 0, "SELECT hookonce.purge(NULL)")
	is(d, d, 0, "SELECT hookonce.purge(now() - interval '90 days', 0)")
	is(d, d, 1, "SELECT hookonce.purge(now() - interval '90 days', 1)")
	is(d, d, 1, "SELECT hookonce.purge(now() - interval '90 days')")
	is(d, d, 0, "SELECT hookonce.purge(now() - interval '90 days')")
	for _, table := range []string{"claims", "responses"} {
		is(d, d, "failed new", "SELECT string_agg(key, ' ' ORDER BY key) FROM hookonce."+table)
	}
}
