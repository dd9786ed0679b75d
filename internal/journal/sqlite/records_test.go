package sqlite_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/testskip"
)

func TestRecords(t *testing.T) { journaltest.RunRecords(t, fixture) }

func TestLargeFailureGroup(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	journaltest.RunLargeGroup(t, fixture)
}
