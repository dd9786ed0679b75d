package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/journal/pg"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

const patience = time.Minute

// listen listens on a store until the test ends. The channel has an element for each time that something
// was heard, which it is once at the beginning.
func listen(t *testing.T, s *pg.Store) (heard chan struct{}, ended chan struct{}) {
	t.Helper()
	heard, ended = make(chan struct{}, 1000), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		s.Listen(ctx, func() { heard <- struct{}{} })
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return heard, ended
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("waited in vain: ", what)
	}
}

func notify(t *testing.T, s *pg.Store) {
	t.Helper()
	if err := s.Notify(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A ring reaches every process on the schema, and nobody on another.
func TestNotifier(t *testing.T) {
	dsn := pgtest.DSN(t)
	one, two, other := open(t, dsn, "one"), open(t, dsn, "one"), open(t, dsn, `other`)
	var all []chan struct{}
	for _, s := range []*pg.Store{one, two, other} {
		heard, _ := listen(t, s)
		await(t, "the first time", heard)
		all = append(all, heard)
	}
	notify(t, one)
	await(t, "its own ring", all[0])
	await(t, "another's ring", all[1])
	notify(t, other)
	await(t, "its ring", all[2])
	if n := len(all[2]); n != 0 {
		t.Errorf("another schema's notifier was heard %d times", n)
	}
}

// A connection that breaks is opened again, and what was rung meanwhile is not missed.
func TestListenerReconnects(t *testing.T) {
	cluster := pgtest.Start(t, pgtest.Options{})
	s := open(t, cluster.DSN(t), "")
	heard, _ := listen(t, s)
	await(t, "the first time", heard)
	if err := cluster.Stop(true); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Restart(); err != nil {
		t.Fatal(err)
	}
	await(t, "that something may have been missed", heard)
	for range 20 { // the pool's own connections broke as well
		if s.Notify(t.Context()) == nil {
			await(t, "a ring after the restart", heard)
			return
		}
	}
	t.Fatal("it cannot be rung any more")
}

// Behind a pooler nobody listens, because somebody else would hear it. A ring from there is heard elsewhere.
func TestNotifierBehindPooler(t *testing.T) {
	dsn := pgtest.DSN(t)
	direct := open(t, dsn, "")
	heard, _ := listen(t, direct)
	await(t, "the first time", heard)
	pooled := open(t, pgtest.PgBouncer(t, dsn)+"&default_query_exec_mode=exec", "")
	deaf, ended := listen(t, pooled)
	await(t, "the end of listening", ended)
	if len(deaf) != 0 {
		t.Error("it believes that it hears something")
	}
	notify(t, pooled)
	await(t, "a ring through the pooler", heard)
}

// Ordinary events ring no notifier, from the receipt to the outcome, retries included: NOTIFY has transactions
// wait for each other. A notification is in the queue before its commit is answered, so the one that comes
// first was sent first.
func TestOrdinaryWorkNotifiesNobody(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn, "")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `LISTEN hookonce; LISTEN last`); err != nil {
		t.Fatal(err)
	}
	j, err := engine.New(s, journaltest.Options(engine.Options{Notifier: s, Destinations: map[string]journal.Destination{"app": {}, "ledger": {Ordered: true}}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []journal.State{journal.Failed, journal.Done} {
		for range 10 {
			e := entry("evt_1")
			e.Resource, e.Destinations = "order", []string{"app", "ledger"}
			if _, err := j.Accept(t.Context(), []*journal.Event{e.Event}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			w := <-j.Work()
			j.Finish(journal.Outcome{Held: w.Held, State: state, Due: time.Now(), Started: time.Now()})
		}
	}
	awaitNothingOpen(t, s)
	if _, err := conn.Exec(t.Context(), `NOTIFY last`); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.WaitForNotification(t.Context()); err != nil || n.Channel != "last" {
		t.Errorf("ordinary work rang the notifier: %+v, %v", n, err)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.WaitForNotification(t.Context()); err != nil || n.Channel != "hookonce" {
		t.Errorf("the stop did not ring: %+v, %v", n, err)
	}
}

// awaitNothingOpen waits until all outcomes are recorded.
func awaitNothingOpen(t *testing.T, s *pg.Store) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		stats, err := s.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(stats.Open) == 0 {
			return
		}
	}
	t.Fatal("some outcomes were not recorded")
}
