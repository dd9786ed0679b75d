package journaltest

import (
	"errors"
	"testing"

	"github.com/hookonce/hookonce/internal/journal"
)

// memoryFixture is a fixture around the reference model.
func memoryFixture(t testing.TB) *Fixture {
	m := NewMemory()
	m.Exclusive = true
	return &Fixture{
		Open: func(testing.TB) journal.Store {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.closed = false
			return m
		},
		Refuse: func(_ testing.TB, key string) {
			m.Refuse = func(e *journal.Record) error {
				if e.Key == key {
					return errors.New("refused")
				}
				return nil
			}
		},
		DropBody: func(_ testing.TB, id int64) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.purge(journal.KindBodies, id)
		},
		RanksOfOlder: func(testing.TB) {}, // there are no older ones
		Rows: func(_ testing.TB, id int64) map[journal.Kind]int {
			rows := map[journal.Kind]int{}
			for _, k := range eventKinds {
				if m.events[id] != nil && m.has(k, id) {
					rows[k] = 1
				}
			}
			return rows
		},
		Attempts: func(_ testing.TB, id int64) (got []journal.Outcome) {
			for _, o := range m.Attempts() {
				if o.EventID == id {
					got = append(got, o)
				}
			}
			return got
		},
	}
}

func TestMemory(t *testing.T)           { Run(t, memoryFixture) }
func TestMemoryCells(t *testing.T)      { RunCells(t, memoryFixture) }
func TestMemoryConcurrent(t *testing.T) { RunConcurrent(t, memoryFixture) }
