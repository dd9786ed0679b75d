package doctor

import (
	"path/filepath"
	"testing"
)

func TestSpaceOfNothing(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	if _, err := Space(absent); err == nil || writable(absent) == nil {
		t.Error("a folder that is not there has space, or can be written to")
	}
}
