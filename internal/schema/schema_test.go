package schema_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hookonce/hookonce/internal/schema"
)

// A file that is missing means that a version changes nothing in a dialect; it does in one of them.
func TestVersionsHaveFiles(t *testing.T) {
	for v := range schema.Version() {
		files, err := filepath.Glob(fmt.Sprintf("*_%d.sql", v+1))
		if err != nil || len(files) == 0 {
			t.Errorf("version %d has no file (%v)", v+1, err)
		}
	}
}
