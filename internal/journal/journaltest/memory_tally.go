package journaltest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/tally"
)

// talliers is what Memory keeps of what was counted: points without their number.
type talliers struct {
	counts  map[time.Duration]map[tally.Point]int64 // by the step
	batches map[string]int64                        // the last of each process
}

// AddTallies implements [journal.Store].
func (m *Memory) AddTallies(ctx context.Context, process string, seq int64, points []tally.Point) error {
	end, err := m.begin(ctx)
	defer end()
	if err != nil || seq <= m.batches[process] {
		return err
	}
	if m.batches == nil {
		m.batches = map[string]int64{}
		m.counts = map[time.Duration]map[tally.Point]int64{time.Minute: {}, time.Hour: {}}
	}
	m.batches[process] = seq
	for _, p := range points {
		minute := tally.Point{Minute: p.Minute.UTC().Truncate(time.Minute), Source: p.Source, Destination: p.Destination, What: p.What}
		if p.What == tally.Active && m.counts[time.Minute][minute] > 0 {
			continue
		}
		for step, counts := range m.counts {
			counts[tally.Point{Minute: p.Minute.UTC().Truncate(step), Source: p.Source, Destination: p.Destination, What: p.What}] += p.N
		}
	}
	return nil
}

// Tallies implements [journal.Store].
func (m *Memory) Tallies(ctx context.Context, q tally.Query) (points []tally.Point, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	sums := map[tally.Point]int64{}
	for p, n := range m.counts[q.Step] {
		if p.Minute.Before(q.From) || !p.Minute.Before(q.Until) || q.Source != "" && q.Source != p.Source ||
			q.Destination != "" && q.Destination != p.Destination || len(q.Whats) > 0 && !slices.Contains(q.Whats, p.What) {
			continue
		}
		if q.Total {
			p.Source, p.Destination = "", ""
		}
		sums[p] += n
	}
	for p, n := range sums {
		p.N = n
		points = append(points, p)
	}
	slices.SortFunc(points, tally.Point.Compare)
	if q.Limit > 0 {
		points = points[:min(q.Limit, len(points))]
	}
	return points, nil
}

// ForgetTallies implements [journal.Store].
func (m *Memory) ForgetTallies(ctx context.Context, now time.Time) (busy bool, err error) {
	end, err := m.begin(ctx)
	defer end()
	if err != nil {
		return false, err
	}
	for step, keep := range map[time.Duration]time.Duration{time.Minute: tally.KeepMinutes, time.Hour: tally.KeepHours} {
		maps.DeleteFunc(m.counts[step], func(p tally.Point, _ int64) bool { return p.Minute.Before(now.Add(-keep)) })
	}
	return false, nil
}
