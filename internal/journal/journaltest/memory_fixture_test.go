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
			m.Refuse = func(e *journal.Entry) error {
				if e.Key == key {
					return errors.New("refused")
				}
				return nil
			}
		},
		DropBody: func(_ testing.TB, id int64) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.dropBody(id)
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
func TestMemoryConcurrent(t *testing.T) { RunConcurrent(t, memoryFixture) }
