package doctor

import (
	"context"
	"fmt"

	"github.com/hookonce/hookonce/internal/journal"
)

const (
	mostNumbered = 10_000   // events are counted up to that
	farOff       = 30 * day // no schedule, and no destination that asks for time, puts a delivery off so long
)

// numbers looks for what a gateway left behind whose clock was ahead: events with identifiers of a time to come, and deliveries
// that are due only then.
func numbers(ctx context.Context, s *store) (found []Finding, err error) {
	if !s.migrated(ctx) {
		return nil, nil // which is a finding of its own
	}
	now := s.now()
	var events, late int64
	count := fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM {tables}events WHERE id >= %d LIMIT %d) e`, journal.BeyondID(now), mostNumbered)
	if err := s.db.QueryRowContext(ctx, s.fill(count)).Scan(&events); err != nil {
		return nil, err
	}
	if err := s.db.QueryRowContext(ctx, s.fill(`SELECT count(*) FROM {tables}deliveries WHERE due_at > {time}`), s.at(now.Add(farOff))).Scan(&late); err != nil {
		return nil, err
	}
	if events > 0 {
		least := ""
		if events == mostNumbered {
			least = "at least "
		}
		found = append(found, doubt("run NTP; start gateways on Postgres anew, whose events are numbered right then; docs/operating.md says under A clock that is wrong what else to look at",
			"%s%s numbered by a clock that was ahead, also what came after it was set back: --since and --until miss it", least, plural(events, "event")))
	}
	if late > 0 {
		found = append(found, doubt("hookonce events replay --state failed has what failed tried at once; docs/operating.md has the statements for the rest under A clock that is wrong",
			"%s due only in %d days or later: a clock was ahead, unless a replay with a rate spread them", plural(late, "delivery"), farOff/day))
	}
	if len(found) == 0 {
		found = append(found, good("none is of a time to come"))
	}
	return found, nil
}
