package ingest_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
)

// maps is the side of a store that keeps maps of cells.
type maps struct {
	journal.CellKeeper
	mu     sync.Mutex
	record journal.CellRecord
}

func (m *maps) CellRecord(context.Context) (journal.CellRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record, nil
}

func (m *maps) CellName(context.Context) (string, error) { return "a", nil }

func (m *maps) RaiseCellMap(_ context.Context, r journal.CellRaise) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record.Maps = append(m.record.Maps, r.Maps...)
	return nil
}

// moving is a journal whose map changes after so many commits. It takes what was placed by its own map, and keeps it.
type moving struct {
	keeping
	*maps
	after int
	t     *testing.T
	calls int
}

// open opens the cell of the store, which has the map of that number at least.
func (m *moving) open(number int64) *cells.Cells {
	c, err := cells.Open(context.Background(), cells.Options{
		Self: "a", Store: m.maps, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Known:      func(context.Context, string, []string) (map[string]journal.Known, error) { return nil, nil },
		Remembered: func(string) time.Duration { return time.Hour },
		Configured: cells.Configured{Number: number, Cells: []cells.Cell{{Name: "a", URL: "https://a", Weight: uint32(number)}}, Sources: []string{"billing"}},
	})
	if err != nil {
		m.t.Error(err)
	}
	return c
}

func (m *moving) Accept(ctx context.Context, events []*journal.Event) ([]journal.Result, error) {
	if m.calls++; m.calls == m.after+1 {
		m.open(2) // by another gateway
	}
	results := make([]journal.Result, len(events))
	for i, ev := range events {
		if r, _ := m.CellRecord(ctx); ev.CellMap != int64(len(r.Maps)) {
			results[i].Err = journal.ErrCellMap
			continue
		}
		m.events = append(m.events, ev)
		results[i] = journal.Result{ID: int64(len(m.events)), Status: journal.Accepted}
		if ev.Key == "" {
			results[i].Status = journal.Unkeyed
		}
	}
	return results, nil
}

// A request whose events take several commits, and between two of which the map changes, is placed anew with what is not on record:
// each event is stored once, also without a key, and the answer counts all of them.
func TestWhatIsStoredIsNotPlacedAgain(t *testing.T) {
	t.Parallel()
	for after := range 4 { // with the last, no map changes
		j := &moving{maps: new(maps), after: after, t: t}
		g := newGate(t, func(o *ingest.Options) { o.Cells, o.Journal = j.open(1), j })
		var all []string
		for i := range 600 { // of which 256 are a part
			if i%2 == 0 {
				all = append(all, fmt.Sprintf(`{"type":"t%d"}`, i))
			} else {
				all = append(all, fmt.Sprintf(`{"id":"evt_%d","type":"t%d"}`, i, i))
			}
		}
		body := "[" + strings.Join(all, ",") + "]"
		w := g.send("billing", body)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"accepted":300`) || !strings.Contains(w.Body.String(), `"unkeyed":300`) {
			t.Errorf("a map after %d commits: %d %s", after, w.Code, w.Body)
		}
		times := map[string]int{}
		for _, ev := range j.events {
			times[ev.Type]++
		}
		if len(times) != 600 || len(j.events) != 600 {
			t.Errorf("a map after %d commits: of 600 events %d are stored, %d times", after, len(times), len(j.events))
		}
	}
}
