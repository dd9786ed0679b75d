package journal

import (
	"context"
	"slices"
	"sync"
	"time"
)

// AlertMemory is an [Alerter] that keeps everything in memory: for what has to be remembered while there is no store, and as the
// model of stores. The zero AlertMemory is empty. It is safe for concurrent use.
type AlertMemory struct {
	mu      sync.Mutex
	book    AlertBook
	records []AlertRecord // oldest first
	notices Notices
	audits  []Audit
	silence int64 // the last number
	record  int64
}

// Bounds of what is in memory; the oldest go.
const (
	maxRecords = 10_000
	maxAudits  = 1_000
)

// ChangeAlerts implements [Alerter].
func (m *AlertMemory) ChangeAlerts(ctx context.Context, try bool, change func(*AlertBook) (*AlertChanges, error)) (bool, error) {
	if !try {
		m.mu.Lock()
	} else if !m.mu.TryLock() {
		return false, nil
	}
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	c, err := change(m.copy())
	if err != nil || c == nil {
		return err == nil, err
	}
	for _, a := range c.Put {
		a.Body = slices.Clone(a.Body)
		if known := m.book.Find(a.AlertID); known != nil {
			*known = a
			continue
		}
		i, _ := slices.BinarySearchFunc(m.book.Alerts, a, func(a, b Alert) int { return a.Compare(b.AlertID) })
		m.book.Alerts = slices.Insert(m.book.Alerts, i, a)
	}
	m.book.Silences = slices.DeleteFunc(m.book.Silences, func(s Silence) bool { return slices.Contains(c.Unsilence, s.ID) })
	for i := range c.Silence {
		m.silence++
		c.Silence[i].ID = m.silence
		m.book.Silences = append(m.book.Silences, c.Silence[i])
	}
	for _, r := range c.Records {
		m.write(r)
	}
	for _, n := range c.Notices {
		m.notices = slices.DeleteFunc(m.notices, func(o Notice) bool { return !o.Leased && o.outdatedBy(n) })
		if i := m.notices.find(&n); i >= 0 {
			n.Token = m.notices[i].Token
			m.notices[i] = n
		} else {
			m.notices = append(m.notices, n)
		}
	}
	m.audits = append(m.audits, c.Audits...)
	m.audits = m.audits[max(0, len(m.audits)-maxAudits):]
	m.notices = slices.DeleteFunc(m.notices, func(n Notice) bool { return n.Since.Before(c.Abandon) })
	if !c.Forget.IsZero() {
		m.forget(c.Forget)
	}
	return true, nil
}

// Audits returns what operators did, oldest first: the last thousand of what was not taken.
func (m *AlertMemory) Audits() []Audit {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.audits)
}

// TakeAudits has the memory forget audits that [AlertMemory.Audits] returned, once they are on record elsewhere.
func (m *AlertMemory) TakeAudits(taken []Audit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.audits = slices.DeleteFunc(m.audits, func(a Audit) bool { return slices.Contains(taken, a) })
}

func (m *AlertMemory) forget(before time.Time) {
	m.records = slices.DeleteFunc(m.records, func(r AlertRecord) bool { return r.At.Before(before) })
	m.book.Silences = slices.DeleteFunc(m.book.Silences, func(s Silence) bool { return s.Until.Before(before) })
	m.book.Alerts = slices.DeleteFunc(m.book.Alerts, func(a Alert) bool {
		waits := slices.ContainsFunc(m.notices, func(n Notice) bool { return n.AlertID == a.AlertID })
		return a.State == AlertResolved && a.Since.Before(before) && !waits
	})
}

func (m *AlertMemory) write(r AlertRecord) {
	m.record++
	r.ID = m.record
	m.records = append(m.records, r)
	m.records = m.records[max(0, len(m.records)-maxRecords):]
}

func (m *AlertMemory) copy() *AlertBook {
	b := &AlertBook{Alerts: slices.Clone(m.book.Alerts), Silences: slices.Clone(m.book.Silences), Waiting: map[string]int{}}
	for _, n := range m.notices {
		b.Waiting[n.Address]++
	}
	return b
}

// Alerts implements [Alerter].
func (m *AlertMemory) Alerts(ctx context.Context) (*AlertBook, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.copy(), ctx.Err()
}

// AlertHistory implements [Alerter].
func (m *AlertMemory) AlertHistory(ctx context.Context, f AlertFilter, before int64, limit int) (all []AlertRecord, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range slices.Backward(m.records) {
		if (before == 0 || r.ID < before) && f.Matches(&r) && len(all) < limit {
			all = append(all, r)
		}
	}
	return all, ctx.Err()
}

// TakeNotices implements [Alerter].
func (m *AlertMemory) TakeNotices(ctx context.Context, now, lease time.Time, addresses []string, limit int) ([]Notice, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	wanted := slices.DeleteFunc(slices.Clone(m.notices), func(n Notice) bool { return !slices.Contains(addresses, n.Address) })
	taken, gone := wanted.Take(now, lease, limit)
	for _, n := range gone {
		m.put(n, nil)
	}
	for _, n := range taken {
		m.put(n, &n)
	}
	return slices.Clone(taken), nil
}

// FinishNotices implements [Alerter].
func (m *AlertMemory) FinishNotices(ctx context.Context, outcomes []NoticeOutcome) (applied []bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range outcomes {
		left, record, ok := m.notices.Settle(&outcomes[i])
		if applied = append(applied, ok); ok {
			m.put(outcomes[i].Notice, left)
		}
		if record != nil {
			m.write(*record)
		}
	}
	return applied, nil
}

// put has one notice stand in the place of another, nil: none.
func (m *AlertMemory) put(old Notice, left *Notice) {
	i := m.notices.find(&old)
	if i < 0 {
		return
	}
	if left == nil {
		m.notices = slices.Delete(m.notices, i, i+1)
		return
	}
	m.notices[i] = *left
}
