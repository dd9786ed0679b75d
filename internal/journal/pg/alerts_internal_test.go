package pg

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// Whoever waits until they may change alerts, in this process or for another one, has no connection meanwhile: however many
// evaluate and tell, events have theirs. Each comes to their turn, or to the end of their time.
func TestWhoWaitsForAlertsHasNoConnection(t *testing.T) {
	const waiting = 4
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ops := []string{"ops"}
	now := time.Now()
	notice := journal.Notice{AlertID: journal.AlertID{Rule: "died", Subject: "a"}, Transition: 1, Address: "ops", Due: now, Since: now}
	if _, err := s.ChangeAlerts(t.Context(), false, func(*journal.AlertBook) (*journal.AlertChanges, error) {
		return &journal.AlertChanges{Notices: []journal.Notice{notice}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	other, err := pgx.ConnectConfig(t.Context(), s.pool.Config().ConnConfig) // of another gateway
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, s.in("{{.}}alerts")); err != nil {
		t.Fatal(err)
	}
	before := s.pool.Stat().AcquireCount()
	done := make(chan error, 2*waiting)
	for range waiting {
		go func() {
			_, err := s.ChangeAlerts(t.Context(), false, func(*journal.AlertBook) (*journal.AlertChanges, error) { return nil, nil })
			done <- err
		}()
		go func() {
			_, err := s.TakeNotices(t.Context(), now, now.Add(time.Minute), ops, 1)
			done <- err
		}()
	}
	// All who look for a notice have looked, and somebody has asked for the lock.
	for end := time.Now().Add(time.Minute); s.pool.Stat().AcquireCount() < before+waiting+1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("those who wait keep others from a connection")
		}
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := s.Ping(ctx); err != nil {
			t.Fatalf("an event would have no connection: %v", err)
		}
		cancel()
	}
	late, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.FinishNotices(late, []journal.NoticeOutcome{{Notice: notice}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who has no time left: %v", err)
	}
	if changed, err := s.ChangeAlerts(t.Context(), true, nil); changed || err != nil {
		t.Errorf("who does not wait: %v, %v", changed, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 * waiting {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
