package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestKeysAreFoundInTheirIndex: what is asked of many keys looks each up in the index of keys, whatever the file has.
func TestKeysAreFoundInTheirIndex(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	steps, err := rows(t.Context(), s.readers, "EXPLAIN QUERY PLAN "+s.in(knownSQL), []any{"billing", "[]"}, func(row scanner) (step string, err error) {
		var id, parent, unused int
		return step, row.Scan(&id, &parent, &unused, &step)
	})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(steps, "\n")
	if strings.Contains(all, "SCAN e") || strings.Contains(all, "SCAN d") || !strings.Contains(all, "(source=? AND key=?)") {
		t.Errorf("the plan is\n%s", all)
	}
}
