package tail

import (
	"context"
	"slices"

	"github.com/hookonce/hookonce/internal/journal"
)

// begin reads what came before the tail joined, which is what the feed had seen then: the rest it tells.
func (t *Tail) begin(ctx context.Context, now *snapshot) error {
	joined := Message{Kind: Beat, At: now.at.text()}
	if t.after == nil {
		t.early = []Message{joined}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if err := t.checkLate(ctx); err != nil {
		return err
	}
	events, more, err := t.backlog(ctx)
	if err != nil {
		return err
	}
	if more {
		t.early = append(t.early, Message{Kind: LeftOut, Before: events[0].ReceivedAt})
	}
	whole := true
	for _, e := range events {
		if e.ID < t.after.floor {
			continue
		}
		if e.ID >= now.at.floor && !now.seen[e.ID] { // that is told when the feed finds it
			whole = false
			continue
		}
		m := Message{Kind: Arrived, Event: e}
		if t.after.told(e.ID) {
			m.Kind = Changed // perhaps: nobody knows how it was told
		}
		if whole {
			at := position{e.ID + 1, t.after.last, unknown}
			m.At = at.text()
		}
		t.early = append(t.early, m)
	}
	t.early = append(t.early, joined)
	return nil
}

// checkLate finds out whether events became visible while nobody looked whose gateway has others on record as told. Nobody
// knows which, so all of that time are told again.
func (t *Tail) checkLate(ctx context.Context) error {
	if t.after.count == unknown {
		return nil
	}
	all, err := t.feed.records.Arrivals(ctx, t.after.floor, journal.MaxScan)
	if err != nil || len(all) == journal.MaxScan {
		return err
	}
	told := 0
	for _, a := range all {
		if t.after.told(a.ID) {
			told++
		}
	}
	if told > t.after.count {
		t.after.last = nil
	}
	return nil
}

// backlog returns the newest events that match, oldest first, from where the tail begins. more says that there are older ones.
func (t *Tail) backlog(ctx context.Context) (events []journal.Summary, more bool, err error) {
	f := journal.Filter{Source: t.filter.Source, Type: t.filter.Type, State: t.filter.State, Since: journal.IDTime(t.after.floor)}
	for before := int64(0); ; {
		page, err := t.feed.records.List(ctx, f, before, min(200, MaxBacklog-len(events)))
		if err != nil {
			return nil, false, err
		}
		events = append(events, page.Events...)
		if before = page.Next; before == 0 || len(events) >= MaxBacklog {
			slices.Reverse(events)
			return events, before != 0, nil
		}
	}
}
