package pg_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

func TestRecords(t *testing.T) {
	n := 0
	for mode, d := range modes(t) {
		n += 1000
		d.schemas.Store(int64(n))
		t.Run(mode, func(t *testing.T) { journaltest.RunRecords(t, d.fixture) })
	}
}
