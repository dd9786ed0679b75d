package pg

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// A destination whose work cannot be picked is told of, once for each cause, while others get theirs.
func TestTakeTellsWhatCannotBePicked(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids, now := journal.NewIDs(s.Writer(), 0), time.Now()
	for i := range 3 {
		r := &journal.Record{ID: ids.Next(now), Event: &journal.Event{Source: "billing", Key: fmt.Sprint(i), Destinations: []string{"app", "ill"}, ReceivedAt: now}}
		if _, err := s.Accept(t.Context(), []*journal.Record{r}, now, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN IF NEW.destination = ''ill'' THEN RAISE EXCEPTION ''broken''; END IF; RETURN NEW; END'`,
		`CREATE TRIGGER refuse BEFORE UPDATE ON hookonce.deliveries FOR EACH ROW EXECUTE FUNCTION refuse()`,
	} {
		if _, err := s.pool.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	want := journal.Wanted{Deliveries: 10, Destinations: []journal.Want{{Destination: "app", Deliveries: 1}, {Destination: "ill", Deliveries: 1, Pick: true}}}
	for range 3 {
		slices.Reverse(want.Destinations) // whichever comes first
		work, err := s.Take(t.Context(), now.Add(time.Second), now.Add(time.Minute), want)
		if err != nil || len(work) != 1 || work[0].Destination != "app" {
			t.Fatalf("%v, %v", work, err)
		}
	}
	if n := strings.Count(log.String(), "destination=ill"); n != 1 || !strings.Contains(log.String(), "broken") {
		t.Errorf("it was told of %d times: %s", n, &log)
	}
	if work, err := s.Take(t.Context(), now.Add(time.Second), now.Add(time.Minute), want); err == nil {
		t.Errorf("with nothing else to take there is no error: %v", work)
	}
}
