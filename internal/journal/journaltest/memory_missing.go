package journaltest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// missingRef is an event that is missing, inside its source. That without an id counts others.
type missingRef struct {
	source, id string
	keyed      bool
}

type missing struct {
	journal.MissingEvent
	dismissed bool
	n         int64
}

// over reports whether a missing event is on record by now.
func (m *Memory) over(r missingRef) bool {
	_, is := m.keys[ref{r.source, r.id}]
	return r.keyed && is
}

func (m *Memory) stands(r missingRef, e *missing, now time.Time, asked time.Time) bool {
	return !e.dismissed && e.Expires.After(now) && (e.Asked.IsZero() || !e.Asked.After(asked)) && !m.over(r)
}

func (m *Memory) keepMissing(source string, f *journal.Finding) {
	kept := 0
	for _, key := range f.Over {
		delete(m.missing, missingRef{source, key, true})
	}
	for r, e := range m.missing {
		switch {
		case !e.Expires.After(f.At), r.source == source && m.over(r):
			delete(m.missing, r)
		case r.source == source && r.id != "":
			kept++
		}
	}
	put, beyond, from := f.Fit(source, func(id string, keyed bool) bool { return m.missing[missingRef{source, id, keyed}] != nil }, kept)
	for _, e := range put {
		id, keyed := e.ID()
		r := missingRef{source, id, keyed}
		if was := m.missing[r]; was != nil {
			if was.Asked.IsZero() {
				was.Asked = e.Asked
			}
			was.Why, was.Expires = cmp.Or(e.Why, was.Why), laterOf(was.Expires, e.Expires)
			continue
		}
		m.missing[r] = &missing{MissingEvent: e, n: 1}
	}
	if beyond == 0 {
		return
	}
	r := missingRef{source: source}
	if was := m.missing[r]; was != nil {
		was.n, was.Found, was.Expires = max(was.n, beyond), f.At, laterOf(was.Expires, f.Expires)
		if from.Before(was.Happened) {
			was.Happened = from
		}
		return
	}
	m.missing[r] = &missing{MissingEvent: journal.MissingEvent{Happened: from, Found: f.At, Expires: f.Expires}, n: beyond}
}

// Missing implements [journal.Store].
func (m *Memory) Missing(ctx context.Context, q journal.MissingQuery) (all []journal.MissingEvent, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	for r, e := range m.missing {
		if r.source == q.Source && r.id != "" && m.stands(r, e, q.Now, q.Now.Add(-journal.AskedGrace)) {
			all = append(all, e.MissingEvent)
		}
	}
	slices.SortFunc(all, func(a, b journal.MissingEvent) int {
		return cmp.Or(a.Found.Compare(b.Found), a.Happened.Compare(b.Happened), strings.Compare(a.Key+a.Entry, b.Key+b.Entry))
	})
	return all[:min(len(all), q.Limit)], nil
}

// MissingCounts implements [journal.Store].
func (m *Memory) MissingCounts(ctx context.Context, now time.Time) (all []journal.MissingCount, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	counts := map[string]journal.MissingCount{}
	for r, e := range m.missing {
		if !m.stands(r, e, now, now.Add(-journal.AskedGrace)) {
			continue
		}
		c := counts[r.source]
		if c.Source = r.source; r.id == "" {
			c.Beyond += e.n
		} else {
			c.Kept++
		}
		if c.First.IsZero() || e.Found.Before(c.First) {
			c.First = e.Found
		}
		counts[r.source] = c
	}
	for _, c := range counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b journal.MissingCount) int { return strings.Compare(a.Source, b.Source) })
	return all, nil
}

// DismissMissing implements [journal.Store].
func (m *Memory) DismissMissing(ctx context.Context, d journal.Dismissal) (n int64, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return 0, err
	}
	var ids []string
	for r, e := range m.missing {
		seen := e.Found.Before(d.FoundBefore)
		switch {
		case r.source != d.Source:
		case r.id == "":
			if seen || !d.Since.IsZero() && !e.Happened.Before(d.Since) {
				n += e.n
				delete(m.missing, r)
			}
		case (seen || slices.Contains(d.IDs, r.id)) && m.stands(r, e, d.At, d.AskedBefore()):
			e.dismissed = true
			n, ids = n+1, append(ids, r.id)
		}
	}
	if n > 0 {
		m.audit(d.Record(n, ids))
	}
	return n, nil
}
