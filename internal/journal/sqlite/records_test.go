package sqlite_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

func TestRecords(t *testing.T) { journaltest.RunRecords(t, fixture) }
