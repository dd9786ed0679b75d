package sqlite_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

func TestRecords(t *testing.T) { journaltest.RunRecords(t, fixture) }

func TestLargeFailureGroup(t *testing.T) { journaltest.RunLargeGroup(t, fixture) }
