package pg_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/pg"
)

// A role that may use the tables and change none of them makes no partitions, says why, and does without: all goes
// to the default partition, and is deleted from there, and from the partitions that an earlier role has made.
func TestRoleWithoutRights(t *testing.T) {
	c := newCalendar(t)
	c.ensurePartitions()
	if e := c.done("billing", "before"); c.in("bodies", e.ID) != "bodies_20260314" || c.in("attempts", e.ID) != "attempts_20260314" {
		t.Fatal("this tests nothing")
	}
	made := c.partitions("bodies")
	c.now = noon.Add(4 * day)
	c.exec(`DROP ROLE IF EXISTS journal_app; CREATE ROLE journal_app LOGIN; GRANT USAGE ON SCHEMA hookonce TO journal_app`)
	for _, g := range gatewayRights(t) {
		c.exec(g.in("hookonce", "journal_app"))
	}
	t.Cleanup(func() {
		c.store.Close()
		if _, err := c.conn.Exec(context.Background(), `DROP OWNED BY journal_app; DROP ROLE journal_app`); err != nil {
			t.Error(err)
		}
	})
	c.store.Close()
	var err error
	if c.store, err = pg.Open(t.Context(), strings.Replace(c.dsn, "postgres@", "journal_app@", 1), pg.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.store.EnsurePartitions(t.Context(), c.now, &c.keep); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Errorf("Provide = %v", err)
	}
	e := c.done("billing", "evt_1")
	if in := c.in("bodies", e.ID); in != "bodies_default" {
		t.Errorf("the body is in %s", in)
	}
	c.now = c.now.Add(8 * day)
	if d, err := c.store.DropPartitions(t.Context(), c.now, &c.keep); err != nil || d.More || d.Busy {
		t.Errorf("Drop = %+v, %v", d, err)
	}
	c.wantPartitions("bodies", made...)
	for _, kind := range []journal.Kind{journal.KindBodies, journal.KindAttempts, journal.KindIDs} {
		if n := c.purge(kind, c.now.Add(-time.Hour)); n != 2 {
			t.Errorf("%d rows of %s were deleted, want those of both events", n, kind)
		}
	}
}
