package observe

import (
	"errors"
	"testing"
	"time"
)

// What is stored where no restart will find it is not on record, and not refused for what it holds either.
func TestNothingIsOnRecordInAFileThatIsGone(t *testing.T) {
	p := sqlitePlace(t)
	p.migrate(t)
	s := p.store(t)
	rows := func(id int64) (rows []row) {
		for i := range int64(2) {
			rows = append(rows, row{id: id + i, Observation: Observation{Source: "orders", ReceivedAt: time.Now(), Kind: Event, Requests: 1}})
		}
		return rows
	}
	if refused, err := s.insert(t.Context(), rows(1)); err != nil || refused != nil {
		t.Fatalf("before: %v, %v", refused, err)
	}
	gone := errors.New("gone")
	asked := 0
	for _, afterwards := range []int{0, 1} { // it is gone before the insert, or after it
		asked = 0
		s.Guard(func() error {
			if asked++; asked > afterwards {
				return gone
			}
			return nil
		})
		if refused, err := s.insert(t.Context(), rows(10)); !errors.Is(err, gone) || refused != nil {
			t.Errorf("gone after %d looks: refused %v, %v", afterwards, refused, err)
		}
	}
}
