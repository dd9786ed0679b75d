package overview

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// span is how many minutes are looked back at: an hour, and what is needed to know what it was three minutes ago.
const span = 64

// latestRequests is how many requests are enough for [SourceState.Latest].
const latestRequests = 20

// hourly are the words that are read for four weeks.
var hourly = []tally.What{tally.Verified, tally.Active, tally.Accepted, tally.Unkeyed, tally.Unrouted, tally.Reseen, tally.Stored, tally.StoredBytes,
	tally.Purged(string(journal.KindIDs)), tally.Purged(string(journal.KindBodies)), tally.First, tally.FirstFailed,
	tally.Secret(1), tally.Secret(2), tally.Secret(3), tally.Secret(tally.MaxSecrets)}

// verified are the words of hours in which a source sent something authentic.
var verified = []tally.What{tally.Active, tally.Accepted, tally.Unkeyed, tally.Reseen}

func minutesOf(now time.Time) tally.Query {
	return tally.Query{From: now.Truncate(time.Minute).Add(-(span - 1) * time.Minute), Until: now.Add(time.Minute), Step: time.Minute}
}

// counts are what happened in the last minutes; the last of each row is the minute that goes on.
type counts struct {
	from time.Time
	rows map[row]*[span]int64
}

type row struct {
	source, destination string
	what                tally.What
}

// newCounts joins what is in the store with what this process knows: of each count the larger, because the store has what
// others counted, and lacks what was counted a moment ago.
func newCounts(now time.Time, stored, recent []tally.Point) *counts {
	c := &counts{from: minutesOf(now).From, rows: map[row]*[span]int64{}}
	for _, points := range [][]tally.Point{stored, recent} {
		for _, p := range points {
			i := int(p.Minute.Sub(c.from) / time.Minute)
			if p.Minute.Before(c.from) || i >= span {
				continue
			}
			r := row{p.Source, p.Destination, p.What}
			if c.rows[r] == nil {
				c.rows[r] = new([span]int64)
			}
			c.rows[r][i] = max(c.rows[r][i], p.N)
		}
	}
	return c
}

// sum adds up the minutes before the last skip ones, so many and the one that had begun.
func (c *counts) sum(r row, minutes, skip int) (n int64) {
	if all := c.rows[r]; all != nil {
		for _, m := range all[max(0, span-1-skip-minutes) : span-skip] {
			n += m
		}
	}
	return n
}

// active counts the minutes, of those that sum adds up, in which there was something.
func (c *counts) active(r row, minutes, skip int) (n int64) {
	if all := c.rows[r]; all != nil {
		for _, m := range all[max(0, span-1-skip-minutes) : span-skip] {
			if m > 0 {
				n++
			}
		}
	}
	return n
}

// last returns the last minute in which something was counted.
func (c *counts) last(r row) (at time.Time) {
	if all := c.rows[r]; all != nil {
		for i, n := range all {
			if n > 0 {
				at = c.from.Add(time.Duration(i) * time.Minute)
			}
		}
	}
	return at
}

// cellMap is why requests are refused that come while the map of cells changes.
const cellMap = "cell_map"

// Why requests are not acknowledged: for a fault of ours; because they are not authentic, or nobody can tell: anybody can name
// a key that nobody has; and for what is as it was configured, or what others send beside them. What strangers can cause is
// among the last two.
var (
	oursReasons       = []string{"queue_full", "store", "timeout", "row_refused", "cell_away", "cell_refused", cellMap, "panic", "internal"}
	unverifiedReasons = []string{"signature_missing", "signature_malformed", "signature_mismatch", "timestamp_missing", "timestamp_old", "timestamp_future", "unverified", "undecided"}
	notTakenReasons   = []string{Unanswered, "address", "rate", "loop", "too_large", "headers_too_large", "slow", "truncated", "crowded", "closing"}
)

func (c *counts) intake(source string, minutes, skip int) Intake {
	of := func(w tally.What) int64 { return c.sum(row{source, "", w}, minutes, skip) }
	in := Intake{
		Received: of(tally.Received), Verified: of(tally.Verified), Accepted: of(tally.Accepted), Copies: of(tally.Copies),
		Reseen: of(tally.Reseen), Conflicts: of(tally.Conflicts), Unkeyed: of(tally.Unkeyed), Missing: of(tally.Missing), Recovered: of(tally.Recovered),
		Active: c.active(row{source, "", tally.Verified}, minutes, skip),
	}
	by := func(reasons []string) map[string]int64 {
		all := map[string]int64{}
		for _, reason := range reasons {
			if n := of(tally.Rejected(reason)); n > 0 {
				all[reason] = n
			}
		}
		return all
	}
	in.OursBy, in.Unverified, in.NotTaken = by(oursReasons), by(unverifiedReasons), by(notTakenReasons)
	for _, n := range in.OursBy {
		in.Ours += n
	}
	return in
}

// draw makes a snapshot of what is known.
func (v *Overview) draw(now time.Time) *Snapshot {
	recent := v.opt.Recent(minutesOf(now))
	c := newCounts(now, v.minutes.value, recent)
	v.past = v.withThisHour(c, now)
	s := &Snapshot{
		At: now.UTC(), Since: v.began.UTC(), Config: v.opt.Config, Store: v.drawStore(now), Gateways: v.joined.Gateways, Numbers: v.drawNumbers(now),
		Sources: []SourceState{}, Destinations: []DestinationState{}, Reconciled: append([]Reconciled{}, v.reconciled.value...), Cells: []CellState{},
		Parts: []Part{v.fleet.tell(), v.open.tell(), v.stats.tell(), v.failures.tell(), v.minutes.tell(), v.hours.tell()},
	}
	if v.opt.Cells != nil {
		s.Cells = append(s.Cells, v.opt.Cells()...)
	}
	if slices.ContainsFunc(v.opt.Sources(), isExpected) {
		s.Parts = append(s.Parts, v.before.tell())
	}
	if v.opt.Reconciled != nil {
		s.Parts = append(s.Parts, v.reconciled.tell())
	}
	if v.opt.Marks != nil && slices.ContainsFunc(v.opt.Sources(), isCompared) {
		s.Parts = append(s.Parts, v.marks.tell())
	}
	if v.opt.Missing != nil {
		s.Parts = append(s.Parts, v.missing.tell())
	}
	hours := v.hoursBySource()
	for _, o := range v.opt.Sources() {
		v.drawSource(&o, c, hours[o.Name], now)
		s.Sources = append(s.Sources, o)
	}
	maps.DeleteFunc(v.seen, func(name string, _ seen) bool {
		return !slices.ContainsFunc(s.Sources, func(o SourceState) bool { return o.Name == name })
	})
	v.keepBacklogs()
	six := v.sixHours(now)
	for i := range v.joined.Destinations {
		d := DestinationState{Destination: v.joined.Destinations[i], Six: six[v.joined.Destinations[i].Name]}
		v.drawDestination(&d, c)
		s.Destinations = append(s.Destinations, d)
	}
	return s
}

// withThisHour returns the hours that were read, with the one that goes on as its minutes have it: these are read more often,
// and this process knows its own to the moment.
func (v *Overview) withThisHour(c *counts, now time.Time) []tally.Point {
	hour := now.UTC().Truncate(time.Hour)
	past := slices.Clone(v.hours.value)
	at := map[row]int{}
	for i, p := range past {
		if p.Minute.Equal(hour) {
			at[row{p.Source, p.Destination, p.What}] = i
		}
	}
	for r, minutes := range c.rows {
		if !slices.Contains(hourly, r.what) {
			continue
		}
		p := tally.Point{Minute: hour, Source: r.source, Destination: r.destination, What: r.what}
		for i, n := range minutes {
			if !c.from.Add(time.Duration(i) * time.Minute).Before(hour) {
				p.N += n
			}
		}
		if i, known := at[r]; known {
			past[i].N = max(past[i].N, p.N)
		} else if p.N > 0 {
			past = append(past, p)
		}
	}
	return past
}

// isExpected reports whether it is said within what time something of a source is expected.
func isExpected(o SourceState) bool { return o.ExpectEvery > 0 }

// isCompared reports whether the gateways compare a source with its sender's list.
func isCompared(o SourceState) bool { return o.Compared != nil }

func (v *Overview) drawCompared(o *SourceState, at time.Time) {
	if !isCompared(*o) {
		return
	}
	now := *o.Compared // which belongs to the configuration
	for _, m := range v.marks.value {
		if m.Source == o.Name {
			now.Through, now.Ended, now.Error = m.Through.UTC(), m.Last.Ended.UTC(), m.Last.Error
			now.Listed, now.Missing, now.Recovered = m.Last.Listed, m.Last.Missing, m.Last.Recovered
			now.Running = m.Held("", at, at)
		}
	}
	o.Compared = &now
}

func (v *Overview) drawLost(o *SourceState) {
	for _, c := range v.missing.value {
		if c.Source == o.Name {
			o.NeverArrived = &Lost{Count: c.Kept, Beyond: c.Beyond, First: c.First.UTC()}
		}
	}
}

func (v *Overview) drawStore(now time.Time) StoreState {
	u := v.opt.Upkeep()
	v.commits = append(v.commits, commitSample{now, u})
	for len(v.commits) > 2 && now.Sub(v.commits[1].at) >= commitSpan {
		v.commits = v.commits[1:]
	}
	first := v.commits[0]
	if len(v.commits) == 1 {
		first.Upkeep = Upkeep{}
	}
	st := StoreState{
		Away: v.away, Unwritable: v.unwritable, Gone: v.opt.Gone != nil && v.opt.Gone(), Full: v.full, Commits: u.Commits - first.Commits,
		Events: v.stats.value.Events, Bytes: v.stats.value.Bytes, FreeBytes: v.opt.Free(), Unrecorded: u.Unrecorded,
		Cleaned: u.Cleaned.UTC(), Partitioned: u.Partitioned.UTC(),
	}
	if st.Commits > 0 {
		st.CommitMS = float64((u.CommitTime - first.CommitTime).Microseconds()) / 1000 / float64(st.Commits)
	}
	if st.FreeBytes == 0 && st.Bytes > 0 && v.opt.Capacity != nil {
		if most := v.opt.Capacity(); most > 0 {
			st.FreeBytes = max(1, most-st.Bytes) // 0 would say that it is not known
		}
	}
	st.DailyBytes = v.dailyBytes(now)
	return st
}

// dailyBytes returns by how much the store grows on a day: bytes that were stored in the last seven days, less the share of
// bodies that were deleted in them. Before there is a whole day nothing is known.
func (v *Overview) dailyBytes(now time.Time) int64 {
	var bytes, stored, purged float64
	first := now
	for _, p := range v.hours.value {
		if p.Minute.Before(now.Add(-week)) {
			continue
		}
		switch p.What {
		case tally.StoredBytes:
			bytes += float64(p.N)
			if p.Minute.Before(first) {
				first = p.Minute
			}
		case tally.Stored:
			stored += float64(p.N)
		case tally.Purged(string(journal.KindBodies)):
			purged += float64(p.N)
		}
	}
	days := now.Sub(first).Hours() / 24
	if days < 1 || stored == 0 {
		return 0
	}
	return int64(max(0, 1-purged/stored) * bytes / days)
}

func (v *Overview) drawSource(o *SourceState, c *counts, hours []Hour, now time.Time) {
	o.Five, o.Hour = c.intake(o.Name, 5, 0), c.intake(o.Name, 60, 0)
	// Some are refused for the map as it should be, while it changes: a fault is what goes on from one window into the next one.
	if c.sum(row{o.Name, "", tally.Rejected(cellMap)}, 5, 6) == 0 {
		o.Five.Ours -= o.Five.OursBy[cellMap]
		delete(o.Five.OursBy, cellMap)
	}
	for n := 0; n <= 60; n++ {
		if o.Latest = c.intake(o.Name, n, 0); o.Latest.Received >= latestRequests {
			break
		}
	}
	seen := v.seen[o.Name]
	o.LastVerified = c.last(row{o.Name, "", tally.Verified})
	if !o.LastVerified.IsZero() {
		seen.verified = o.LastVerified
	} else {
		o.LastVerified = lastOf(hours, seen.verified)
		if o.LastVerified.After(now) {
			o.LastVerified = now.UTC()
		}
	}
	for _, reason := range unverifiedReasons {
		all := c.rows[row{o.Name, "", tally.Rejected(reason)}]
		if all == nil {
			continue
		}
		for i, n := range all {
			at := c.from.Add(time.Duration(i) * time.Minute)
			if n > 0 && at.After(o.LastVerified) && (o.FailedSince.IsZero() || at.Before(o.FailedSince)) {
				o.FailedSince = at
			}
			if n > 0 {
				o.LastFailed = later(o.LastFailed, at)
			}
		}
	}
	if seen.last.Equal(o.LastVerified) && !seen.first.IsZero() && (o.FailedSince.IsZero() || seen.first.Before(o.FailedSince)) {
		o.FailedSince = seen.first
	}
	seen.last, seen.first = o.LastVerified, o.FailedSince
	v.seen[o.Name] = seen
	v.drawSecrets(o, c, now)
	o.Day = routed(hours, now)
	v.drawCompared(o, now)
	v.drawLost(o)
	o.Usual = LearnShare(hours, now)
	for o.ReseenFor < 3 {
		five, hour := c.intake(o.Name, 5, o.ReseenFor), c.intake(o.Name, 60, o.ReseenFor)
		if !o.Usual.Exceeds(five.Events(), five.Reseen, 6, 10) && !o.Usual.Exceeds(hour.Events(), hour.Reseen, 6, 10) {
			break
		}
		o.ReseenFor++
	}
	rhythm := LearnRhythm(hours, now)
	o.Silence = rhythm.Since(o.LastVerified, now)
	if o.LastVerified.IsZero() {
		o.LastVerified = v.before.value[o.Name] // of which the rhythm of four weeks says nothing
	}
}

// lastOf returns when the last of hours had something: the minute that is known, if it does not lie before that hour, or else
// its last one, so that nobody is called silent too early.
func lastOf(hours []Hour, known time.Time) (last time.Time) {
	for _, h := range hours {
		if h.Active == 0 && h.Events == 0 {
			continue
		}
		if last = h.At.Add(59 * time.Minute); !known.Before(h.At) {
			last = known
		}
	}
	return last
}

// routed counts what the routes of a source wanted in the day before now.
func routed(hours []Hour, now time.Time) (r Routed) {
	for _, h := range hours {
		if h.At.Add(time.Hour).After(now.Add(-24 * time.Hour)) {
			r.New += h.Events - h.Reseen
			r.Unrouted += h.Unrouted
		}
	}
	return r
}

// drawSecrets says how often each secret of a source was used. Of several it is counted who verified a request; a single one
// verified all that is authentic.
func (v *Overview) drawSecrets(o *SourceState, c *counts, now time.Time) {
	o.Secrets = slices.Clone(o.Secrets) // which are those of the configuration
	for i := range o.Secrets[:min(len(o.Secrets), tally.MaxSecrets)] {
		secret, what := &o.Secrets[i], tally.Secret(i+1)
		if len(o.Secrets) == 1 {
			what = tally.Verified
		}
		secret.Hour, secret.Shared = c.sum(row{o.Name, "", what}, 60, 0), i+1 == tally.MaxSecrets && len(o.Secrets) > i+1
		for _, p := range v.past {
			if p.Source != o.Name || p.What != what || p.Minute.After(now) {
				continue
			}
			if o.SecretsSince.IsZero() || p.Minute.Before(o.SecretsSince) {
				o.SecretsSince = p.Minute
			}
			if ends := p.Minute.Add(time.Hour); ends.After(now.Add(-week)) {
				secret.Week += p.N
				if ends.After(now.Add(-24 * time.Hour)) {
					secret.Day += p.N
				}
			}
		}
	}
}

func (v *Overview) drawDestination(d *DestinationState, c *counts) {
	d.Failures = []Failure{}
	for _, o := range d.Open {
		if o.State == string(journal.Dead) {
			d.Dead = o.Count
			continue
		}
		d.Backlog += o.Count
		if d.Oldest == nil || o.Oldest.Before(*d.Oldest) {
			d.Oldest = &o.Oldest
		}
		if d.Since == nil || o.Since.Before(*d.Since) {
			d.Since = &o.Since
		}
	}
	for r := range c.rows {
		if r.destination != d.Name {
			continue
		}
		for _, w := range []struct {
			minutes int
			in      *Outcomes
		}{{5, &d.Five}, {30, &d.Half}, {60, &d.Hour}} {
			w.in.add(r.what, c.sum(r, w.minutes, 0))
		}
	}
	d.Six = d.Six.atLeast(d.Hour.FirstAttempts())
	d.DrainsIn = v.drainsIn(d)
	for _, g := range v.failures.value.Open {
		if g.Destination == d.Name {
			d.Failures = append(d.Failures, failure(&g))
		}
	}
	slices.SortStableFunc(d.Failures, func(a, b Failure) int { return cmp.Compare(b.Count, a.Count) })
	if open(&d.Destination, journal.Failed)+d.Dead == 0 {
		d.Failures = []Failure{}
	}
	d.Blocked = v.blocked[d.Name]
	if open(&d.Destination, journal.Failed) == 0 {
		d.Blocked = nil
	}
}

// keepBacklogs keeps what was counted last, once, and forgets what is older than [DrainSpan].
func (v *Overview) keepBacklogs() {
	read := v.open.read
	if n := len(v.backlogs); read.IsZero() || n > 0 && v.backlogs[n-1].at.Equal(read) {
		return
	}
	v.backlogs = slices.DeleteFunc(v.backlogs, func(b backlogSample) bool { return b.at.After(read) || read.Sub(b.at) > DrainSpan })
	of := map[string]int64{}
	for _, c := range v.open.value {
		if c.State != journal.Dead {
			of[c.Destination] += c.Count
		}
	}
	paused := map[string]bool{}
	for i := range v.joined.Destinations {
		paused[v.joined.Destinations[i].Name] = v.joined.Destinations[i].Pause != nil
	}
	v.backlogs = append(v.backlogs, backlogSample{read, of, paused})
}

// drainsIn returns when a backlog is gone, as [DestinationState.DrainsIn]. It goes by how the backlog itself changed: what was
// done says nothing of what came meanwhile, and what failed and is due in hours is not worked off at the pace of the rest.
func (v *Overview) drainsIn(d *DestinationState) *float64 {
	switch {
	case d.Backlog == 0:
		return nil
	case !d.Configured, d.Pause != nil:
		return new(0.0)
	}
	seen := v.backlogs
	for i, b := range v.backlogs {
		if b.paused[d.Name] { // which says nothing of afterwards
			seen = v.backlogs[i+1:]
		}
	}
	if len(seen) == 0 {
		return nil
	}
	was, is := seen[0], seen[len(seen)-1]
	seconds, gone := is.at.Sub(was.at).Seconds(), was.of[d.Name]-is.of[d.Name]
	switch {
	case seconds < drainLeast.Seconds():
		return nil
	case gone <= 0:
		return new(0.0)
	}
	return new(float64(d.Backlog) * seconds / float64(gone))
}

func (o *Outcomes) add(w tally.What, n int64) {
	switch w {
	case tally.First:
		o.First += n
	case tally.FirstFailed:
		o.FirstFailed += n
	case tally.Attempts:
		o.Attempts += n
	case tally.Done:
		o.Done += n
	case tally.Failed:
		o.Failed += n
	case tally.Dead:
		o.Dead += n
	}
}

func (f *FirstAttempts) add(w tally.What, n int64) {
	switch w {
	case tally.First:
		f.First += n
	case tally.FirstFailed:
		f.FirstFailed += n
	}
}

// atLeast returns the larger counts: those of hours are some minutes old.
func (f FirstAttempts) atLeast(hour FirstAttempts) FirstAttempts {
	return FirstAttempts{max(f.First, hour.First), max(f.FirstFailed, hour.FirstFailed)}
}

func failure(g *journal.FailureGroup) Failure {
	f := Failure{Kind: string(g.Kind), Status: g.Status, Error: strings.TrimSuffix(g.Error, journal.SparedNote), Count: g.Count, Dead: g.Dead, Since: g.Since.UTC(), Latest: g.Latest.UTC()}
	for i, s := range g.Samples {
		if i == 0 {
			f.Source, f.Event, f.Type = s.Source, s.EventID, s.Type
		}
		if s.Type != f.Type {
			f.Type = ""
		}
	}
	if len(g.Samples) < 2 {
		f.Type = "" // one has nothing in common with others
	}
	return f
}

// hoursBySource returns what each source sent in the hours of four weeks.
func (v *Overview) hoursBySource() map[string][]Hour {
	all := map[string][]Hour{}
	for _, p := range v.past { // by time, then source
		of := all[p.Source]
		if len(of) == 0 || !of[len(of)-1].At.Equal(p.Minute) {
			of = append(of, Hour{At: p.Minute})
		}
		h := &of[len(of)-1]
		switch p.What {
		case tally.Accepted, tally.Unkeyed:
			h.Events += p.N
		case tally.Reseen:
			h.Reseen += p.N
			h.Events += p.N
		case tally.Active:
			h.Active += p.N
		case tally.Unrouted:
			h.Unrouted += p.N
		}
		all[p.Source] = of
	}
	return all
}

func (v *Overview) sixHours(now time.Time) map[string]FirstAttempts {
	all := map[string]FirstAttempts{}
	for _, p := range v.past {
		if p.Destination != "" && !p.Minute.Before(now.Add(-6*time.Hour)) {
			o := all[p.Destination]
			o.add(p.What, p.N)
			all[p.Destination] = o
		}
	}
	return all
}

func (v *Overview) drawNumbers(now time.Time) Numbers {
	const hours = 7 * 24
	n := Numbers{Rows: v.stats.value.Events, FirstShares: make([]float64, hours), ReseenCounts: make([]float64, hours), StoredCounts: make([]float64, hours)}
	firsts := make([]float64, hours)
	from, today := now.Truncate(time.Hour).Add(-(hours-1)*time.Hour), now.Truncate(24*time.Hour)
	for _, p := range v.past {
		i := int(p.Minute.Sub(from) / time.Hour)
		if p.Minute.Before(from) || i >= hours {
			continue
		}
		day, yesterday := i >= hours-24, p.Minute.Before(today) && !p.Minute.Before(today.Add(-24*time.Hour))
		switch p.What {
		case tally.First:
			firsts[i] += float64(p.N)
		case tally.FirstFailed:
			n.FirstShares[i] += float64(p.N)
		case tally.Reseen:
			n.ReseenCounts[i] += float64(p.N)
		case tally.Stored:
			n.StoredCounts[i] += float64(p.N)
			if yesterday {
				n.StoredYesterday += p.N
			}
		case tally.Purged(string(journal.KindIDs)):
			if yesterday {
				n.PurgedYesterday += p.N
			}
		}
		if !day {
			continue
		}
		n.First.add(p.What, p.N)
		switch p.What {
		case tally.Reseen:
			n.Reseen += p.N
			n.Events += p.N
		case tally.Accepted, tally.Unkeyed:
			n.Events += p.N
		}
	}
	for i := range firsts {
		if firsts[i] > 0 {
			n.FirstShares[i] /= firsts[i]
		}
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
