package effects

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// Whatever a condition of the user's calls, a question changes nothing.
func TestQuestionsOnlyRead(t *testing.T) {
	path, _ := application(t)
	for driver, dsn := range map[string]string{config.SQLite: path, config.Postgres: pgtest.DSN(t)} {
		s, err := open(t.Context(), config.Store{Driver: driver, DSN: dsn}, Question{Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.tx.ExecContext(t.Context(), "CREATE TABLE refunds (event_id TEXT)"); err == nil {
			t.Errorf("%s: a table is made", driver)
		}
		s.close()
	}
}
