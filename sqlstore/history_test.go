package sqlstore_test

import (
	"testing"

	"github.com/hookonce/hookonce/storetest"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]connection{"modernc": modernc, "mattn": mattn, "pgx": pgxStdlib, "mysql": goMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.RunHistory(t, c.config(t).History())
		})
	}
}
