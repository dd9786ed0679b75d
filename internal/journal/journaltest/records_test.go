package journaltest

import "testing"

func TestMemoryRecords(t *testing.T) { RunRecords(t, memoryFixture) }
