package standby

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/internal/tally"
)

// reads says of every method of the journal's store whether a copy may be asked instead. What writes, and whatever
// something is decided by, is false.
var reads = map[string]bool{
	"List": true, "Summaries": true, "Contents": true, "Find": true, "FindAnywhere": true, "History": true, "FailureGroups": true, "Open": true,
	"Audits": true, "Tallies": true,

	"Accept": false, "RecordBypassed": false, "RecordDuplicates": false, "Statuses": false,
	"Take": false, "Extend": false, "Finish": false, "Orphans": false,
	"Purge": false, "Stats": false, "Ping": false, "Close": false,
	"Arrivals": false, // the feed decides by it what it has told
	"Replay":   false, "SetPaused": false, "Pauses": false, "RecordAudit": false,
	"Announce": false, "Withdraw": false, "Gateways": false, // who is gone is decided by when it was last seen
	"AddTallies": false, "ForgetTallies": false,
	"ChangeAlerts": false, "Alerts": false, "AlertHistory": false, "TakeNotices": false, "FinishNotices": false,
	"Known": false, "TakeMark": false, "AdvanceMark": false, "ReleaseMark": false, "Marks": false,
	"Missing": false, "MissingCounts": false, "DismissMissing": false, "KnownElsewhere": false, "HasBefore": false, // alerts and recoveries go by them
}

// Whoever adds a method to the store decides here whether a copy may answer it, and a copy is asked nothing else.
func TestEveryMethodIsDecidedAbout(t *testing.T) {
	store, pages := reflect.TypeFor[journal.Store](), reflect.TypeFor[Pages]()
	for m := range store.Methods() {
		copyToo, decided := reads[m.Name]
		_, asked := pages.MethodByName(m.Name)
		switch {
		case !decided:
			t.Errorf("%s is new: say in reads whether a copy may be asked, which is false for all that writes or decides", m.Name)
		case copyToo != asked:
			t.Errorf("a copy may be asked for %s: %v, and Pages has it: %v", m.Name, copyToo, asked)
		}
	}
	for m := range pages.Methods() {
		if _, there := store.MethodByName(m.Name); !there {
			t.Errorf("Pages has %s, which is no method of the store", m.Name)
		}
	}
}

// Each method is called, and the right one of the two is asked.
func TestWhoIsAsked(t *testing.T) {
	w := newWorld(t)
	store := reflect.TypeFor[journal.Store]()
	for m := range store.Methods() {
		if m.Name == "Close" {
			continue
		}
		w.asked = nil
		args := make([]reflect.Value, m.Type.NumIn())
		for i := range args {
			args[i] = reflect.Zero(m.Type.In(i))
		}
		args[0] = reflect.ValueOf(t.Context())
		func() {
			defer func() {
				if recover() != nil { // the primary of this world has nothing but its pages
					w.asked = append(w.asked, "primary")
				}
			}()
			reflect.ValueOf(journal.Store(w.records)).MethodByName(m.Name).Call(args)
		}()
		if want := map[bool]string{true: "copy", false: "primary"}[reads[m.Name]]; !slices.Equal(w.asked, []string{want}) {
			t.Errorf("%s asks %v, want %s", m.Name, w.asked, want)
		}
	}
}

// What operators did is shown at once, what something is decided by is never read from a copy, what a copy does not have is
// asked of the primary, and so is everything while it is away or fails. Answers say how old they are.
func TestWhenThePrimaryIsAsked(t *testing.T) {
	w := newWorld(t)
	list := func(ctx context.Context) string {
		w.asked = nil
		_, err := w.records.List(ctx, journal.Filter{}, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(w.asked, " and ")
	}
	for _, c := range []struct {
		when string
		do   func()
		want string
	}{
		{"all is well", func() {}, "copy"},
		{"an operator did something", func() { w.records.Changed() }, "primary"},
		{"the copy has it", w.sync, "copy"},
		{"the copy is a little behind", func() { w.lag(3 * time.Second) }, "copy"},
		{"and an operator does something", func() { w.records.Changed() }, "primary"},
		{"and the copy has come that far", w.sync, "copy"},
		{"the copy fails", func() { w.copy.err = errors.New("canceling statement due to conflict with recovery") }, "copy and primary"},
		{"until it is looked at again", func() { w.copy.err = nil }, "primary"},
		{"and answers", w.sync, "copy"},
		{"the copy is away", func() { w.away(errors.New("connection refused")) }, "primary"},
		{"and is back", func() { w.away(nil); w.sync() }, "copy"},
	} {
		c.do()
		if got := list(t.Context()); got != c.want {
			t.Errorf("%s: %s is asked, want %s", c.when, got, c.want)
		}
	}
	if got := list(journal.Deciding(t.Context())); got != "primary" {
		t.Errorf("where something is decided %s is asked", got)
	}
	w.copy.err = journal.ErrNoEvent
	w.asked = nil
	if _, err := w.records.History(t.Context(), 7); err != nil || !slices.Equal(w.asked, []string{"copy", "primary"}) {
		t.Errorf("an event that the copy does not have: %v, %v", w.asked, err)
	}
	w.copy.err = nil
	if got := list(t.Context()); got != "copy" {
		t.Errorf("after an event that the copy does not have, %s is asked", got)
	}
	if n := strings.Count(w.log.String(), "away"); n != 2 {
		t.Errorf("the log says %d times that the copy is away, want 2:\n%s", n, w.log.String())
	}
}

func TestAnswersSayHowOldTheyAre(t *testing.T) {
	w := newWorld(t)
	w.lag(5 * time.Second)
	ctx, asOf := journal.NotingAsOf(t.Context())
	if _, err := w.records.List(ctx, journal.Filter{}, 0, 1); err != nil {
		t.Fatal(err)
	}
	if age := w.now().Sub(asOf.Moment()); age < 5*time.Second || age > 7*time.Second {
		t.Errorf("the answer of a copy that is 5 s behind is %v old", age)
	}
	ctx, asOf = journal.NotingAsOf(journal.Deciding(t.Context()))
	if _, err := w.records.List(ctx, journal.Filter{}, 0, 1); err != nil || !asOf.Moment().IsZero() {
		t.Errorf("the primary's answer is as of %v, %v", asOf.Moment(), err)
	}
}

// A primary that is away cannot say what it has written. What the copy has is as old as it was, and is shown.
func TestThePrimaryIsAway(t *testing.T) {
	w := newWorld(t)
	before, _ := w.records.AsOf()
	w.clock += time.Minute
	w.failing = errors.New("connection refused")
	w.records.look(t.Context())
	if after, asked := w.records.AsOf(); !asked || !after.Equal(before) {
		t.Errorf("as of %v (asked: %v), want %v", after, asked, before)
	}
}

// How far back it is known what the primary had written is the same while the copy is far behind and while it is away. It is not
// asked before it has come that far.
func TestWhatIsRemembered(t *testing.T) {
	for name, away := range map[string]error{"behind": nil, "away": errors.New("connection refused")} {
		w := newWorld(t)
		w.away(away)
		w.lag(Farthest + time.Minute)
		if n := len(w.records.written); n > int(Farthest/time.Second)+1 {
			t.Errorf("%s: %d marks are remembered after %v", name, n, Farthest+time.Minute)
		}
		if _, asked := w.records.AsOf(); asked {
			t.Errorf("%s: a copy is asked that is more than %v behind", name, Farthest)
		}
		if n := strings.Count(w.log.String(), "away"); n != 1 {
			t.Errorf("%s: the log says %d times that the copy is away, want 1:\n%s", name, n, w.log.String())
		}
		w.away(nil)
		w.sync()
		if moment, asked := w.records.AsOf(); !asked || !moment.Equal(w.now()) || len(w.records.written) != 0 {
			t.Errorf("%s: when it is back it has everything as of %v (asked: %v), and %d marks are left", name, moment, asked, len(w.records.written))
		}
	}
}

// After the primary went back in time, or a standby took over that had less of the log, one that has more is no copy, and does not
// become one when the primary has written as much. One that follows is asked again as soon as it has what is new, and nothing
// is said of it.
func TestTheLogWentAnotherWay(t *testing.T) {
	type state struct {
		primary pgstandby.Written
		copy    pgstandby.Replayed
	}
	at := func(timeline uint32, lsn uint64) pgstandby.Written {
		return pgstandby.Written{Timeline: timeline, LSN: lsn, Since: lsn - 1}
	}
	has := func(lsn uint64, timeline uint32, when uint64) pgstandby.Replayed {
		return pgstandby.Replayed{LSN: lsn, Timeline: timeline, At: when}
	}
	for name, c := range map[string]struct {
		then []state // in each second after 100 was written and replayed on timeline 1
		ask  []bool  // whether the copy is asked then
		away int     // how often the log says that the copy is away
	}{
		"the primary went back":            {[]state{{at(1, 60), has(100, 1, 90)}}, []bool{false}, 1},
		"and comes to where the copy is":   {[]state{{at(1, 99), has(100, 1, 90)}, {at(1, 105), has(100, 1, 90)}, {at(1, 110), has(100, 1, 90)}}, []bool{false, false, false}, 1},
		"to a timeline of its own":         {[]state{{at(2, 60), has(100, 1, 50)}, {at(2, 105), has(100, 1, 50)}}, []bool{false, false}, 1},
		"as it was seen too late":          {[]state{{at(2, 105), has(100, 1, 50)}, {at(2, 106), has(100, 1, 50)}}, []bool{false, false}, 0},
		"and the copy follows the former":  {[]state{{at(2, 60), has(50, 1, 50)}, {at(2, 90), has(85, 1, 85)}}, []bool{false, false}, 1},
		"the copy follows another":         {[]state{{at(1, 110), has(105, 2, 101)}}, []bool{false}, 1},
		"the copy is rebuilt":              {[]state{{at(1, 60), has(100, 1, 90)}, {at(1, 70), has(70, 1, 65)}}, []bool{false, true}, 1},
		"the copy follows":                 {[]state{{at(2, 110), has(100, 1, 100)}, {at(2, 120), has(120, 1, 100)}, {at(2, 130), has(130, 2, 125)}}, []bool{false, true, true}, 0},
		"the copy had not all":             {[]state{{at(1, 110), has(105, 1, 90)}, {at(2, 120), has(105, 1, 105)}, {at(2, 130), has(125, 2, 121)}}, []bool{true, false, true}, 0},
		"the copy is another database":     {[]state{{at(1, 110), pgstandby.Replayed{Database: "other", LSN: 105, Timeline: 1}}}, []bool{false}, 1},
		"the copy was promoted":            {[]state{{at(2, 110), has(110, 2, 110)}}, []bool{true}, 0},
		"the copy is a former primary":     {[]state{{at(2, 110), has(115, 1, 115)}}, []bool{false}, 1},
		"a standby that had more promoted": {[]state{{at(2, 200), has(100, 1, 90)}, {at(2, 210), has(210, 2, 190)}}, []bool{false, true}, 0},
	} {
		w := newWorld(t)
		for i, now := range c.then {
			w.clock += time.Second
			w.written, w.copy.replayed = now.primary, now.copy
			w.records.look(t.Context())
			if _, asked := w.records.AsOf(); asked != c.ask[i] {
				t.Errorf("%s: after %d s the copy is asked: %v, want %v", name, i+1, asked, c.ask[i])
			}
		}
		if n := strings.Count(w.log.String(), "away"); n != c.away {
			t.Errorf("%s: the log says %d times that the copy is away, want %d:\n%s", name, n, c.away, w.log.String())
		}
	}
}

// A copy may have got what the primary wrote after it was asked.
func TestThePrimaryWritesMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.clock += time.Second
	w.copy.replayed.LSN = 150
	w.copy.seen = func() { w.written.LSN = 160 }
	w.records.look(t.Context())
	if moment, asked := w.records.AsOf(); !asked || !moment.Equal(w.now()) || w.log.String() != "" {
		t.Errorf("as of %v (asked: %v), and the log says %q", moment, asked, w.log.String())
	}
	w.clock += time.Second
	w.copy.replayed.LSN, w.copy.seen = 200, func() { w.failing = errors.New("connection refused") }
	w.records.look(t.Context())
	if moment, asked := w.records.AsOf(); !asked || !moment.Equal(w.now().Add(-time.Second)) || w.log.String() != "" {
		t.Errorf("the primary is away, and the copy, of which nobody knows whether it follows, is asked: %v, as of %v, and the log says %q", asked, moment, w.log.String())
	}
}

// The look at the copy repeats by itself, and ends with Close.
func TestLooksRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{copy: &source{replayed: pgstandby.Replayed{LSN: 1}}}
		w.copy.world = w
		r := New(Options{Written: func(context.Context) (pgstandby.Written, error) { return pgstandby.Written{LSN: 1}, nil }, Copy: w.copy, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		time.Sleep(10 * interval)
		synctest.Wait()
		if moment, asked := r.AsOf(); !asked || time.Since(moment) > interval {
			t.Errorf("as of %v, %v", moment, asked)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// world is a primary and a copy whose clock and log the test moves.
type world struct {
	records *Records
	copy    *source
	log     *lines
	asked   []string
	clock   time.Duration
	written pgstandby.Written
	failing error
}

// lines collects a log.
type lines struct {
	mu sync.Mutex
	strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.Write(p)
}

func newWorld(t *testing.T) *world {
	w := &world{log: new(lines), written: pgstandby.Written{Timeline: 1, LSN: 100, Since: 1}}
	w.copy = &source{world: w, name: "copy", replayed: pgstandby.Replayed{LSN: 100, Timeline: 1}}
	w.records = &Records{Store: primary{source: &source{world: w, name: "primary"}}, opt: Options{
		Written: func(context.Context) (pgstandby.Written, error) { return w.written, w.failing },
		Copy:    w.copy, Now: w.now, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
	}}
	w.records.look(t.Context())
	return w
}

func (w *world) now() time.Time { return time.Unix(1_800_000_000, 0).Add(w.clock) }

// sync has the copy come to where the primary is.
func (w *world) sync() {
	w.clock += time.Second
	w.written.LSN++
	w.copy.replayed.LSN = w.written.LSN
	w.records.look(context.Background())
}

// lag has the primary write for a while what the copy does not get.
func (w *world) lag(d time.Duration) {
	for range d / time.Second {
		w.clock += time.Second
		w.written.LSN++
		w.records.look(context.Background())
	}
}

// away has the copy answer nothing, or come back.
func (w *world) away(err error) {
	w.copy.away = err
	w.clock += time.Second
	w.records.look(context.Background())
}

// source answers pages, and notes that it was asked.
type source struct {
	*world
	name     string
	replayed pgstandby.Replayed
	seen     func() // runs when it is asked how far it is
	err      error
	away     error
}

func (s *source) note() error {
	s.asked = append(s.asked, s.name)
	return s.err
}

func (s *source) Replayed(context.Context) (pgstandby.Replayed, error) {
	if s.seen != nil {
		s.seen()
	}
	return s.replayed, s.away
}

func (s *source) List(context.Context, journal.Filter, int64, int) (journal.Page, error) {
	return journal.Page{}, s.note()
}
func (s *source) Summaries(context.Context, []int64) ([]journal.Summary, error) { return nil, s.note() }
func (s *source) Contents(context.Context, []int64, func(int64, []byte, []byte) error) error {
	return s.note()
}
func (s *source) Find(context.Context, string, string) (int64, error) { return 0, s.note() }
func (s *source) FindAnywhere(context.Context, string) ([]journal.Summary, error) {
	return nil, s.note()
}
func (s *source) History(context.Context, int64) (*journal.History, error) {
	return nil, s.note()
}
func (s *source) FailureGroups(context.Context, time.Time) (journal.Failures, error) {
	return journal.Failures{}, s.note()
}
func (s *source) Open(context.Context) ([]journal.OpenCount, error)           { return nil, s.note() }
func (s *source) Audits(context.Context, int64, int) ([]journal.Audit, error) { return nil, s.note() }
func (s *source) Tallies(context.Context, tally.Query) ([]tally.Point, error) { return nil, s.note() }

// primary is a store that has its pages alone.
type primary struct {
	journal.Store
	*source
}

func (p primary) List(ctx context.Context, f journal.Filter, before int64, limit int) (journal.Page, error) {
	return p.source.List(ctx, f, before, limit)
}
func (p primary) Summaries(ctx context.Context, ids []int64) ([]journal.Summary, error) {
	return p.source.Summaries(ctx, ids)
}
func (p primary) Contents(ctx context.Context, ids []int64, see func(int64, []byte, []byte) error) error {
	return p.source.Contents(ctx, ids, see)
}
func (p primary) Find(ctx context.Context, source, key string) (int64, error) {
	return p.source.Find(ctx, source, key)
}
func (p primary) FindAnywhere(ctx context.Context, key string) ([]journal.Summary, error) {
	return p.source.FindAnywhere(ctx, key)
}
func (p primary) History(ctx context.Context, id int64) (*journal.History, error) {
	return p.source.History(ctx, id)
}
func (p primary) FailureGroups(ctx context.Context, since time.Time) (journal.Failures, error) {
	return p.source.FailureGroups(ctx, since)
}
func (p primary) Open(ctx context.Context) ([]journal.OpenCount, error) { return p.source.Open(ctx) }
func (p primary) Audits(ctx context.Context, before int64, limit int) ([]journal.Audit, error) {
	return p.source.Audits(ctx, before, limit)
}
func (p primary) Tallies(ctx context.Context, q tally.Query) ([]tally.Point, error) {
	return p.source.Tallies(ctx, q)
}
