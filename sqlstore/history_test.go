package sqlstore_test

import (
	"github.com/hookonce/hookonce/internal/testskip"
	"testing"

	"github.com/hookonce/hookonce/storetest"
)

func TestHistory(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	for name, c := range map[string]connection{"modernc": modernc, "mattn": mattn, "pgx": pgxStdlib, "mysql": goMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.RunHistory(t, c.config(t).History())
		})
	}
}
