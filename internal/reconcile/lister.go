package reconcile

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/hookonce/hookonce"
	httpheader "github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/provider/spec"
)

// The bounds of a list.
const (
	maxPages  = 20_000
	maxBarren = 100       // pages in a row that have nothing new
	maxListed = 2_000_000 // entries: as many pages of a hundred
	maxPasses = 6
)

// clockOff is how far our clock is from the sender's before that is taken for more than the way of an answer.
const clockOff = time.Minute

// overlap is how far outside of the range a list is read: senders cut times off at seconds, and do not say whether a bound is
// included.
const overlap = time.Minute

// Entry is one entry of a list.
type Entry struct {
	// ID is the sender's own id of the entry, at most 512 bytes. Empty: it has none that could be used.
	ID string
	// Time is when it was made, zero if the list does not say.
	Time time.Time
	// Delivery is what the sender says.
	Delivery Delivery
	// Events are those of the entry, as far as the list has them. An entry of a batch has several.
	Events []hookonce.Event
	// Whole is set if the events have their bodies, so that they can be stored.
	Whole bool
	// Again is what the sender wants to be told to send the entry again. Empty: it cannot be.
	Again string
}

// Page is what one request brought.
type Page struct {
	// Entries are in the order of the list. Entries that were on an earlier page are not among them.
	Entries []Entry
	// Repeated are how many were on an earlier page.
	Repeated int

	twice  bool // one of them was there before in the same pass
	behind int  // of the entries come behind one that was there before
}

// Lister reads the list of one source from one time to another. It is made for one use, by one goroutine.
type Lister struct {
	client       *client
	provider     *spec.Provider
	since, until time.Time
	cut          bool
	pace         pace
	position     int // of pages that are counted
	seen, inPass map[sum]struct{}

	answered time.Time     // the first page was, by the sender's clock; zero: it does not say
	ahead    time.Duration // our clock was then, by more than [clockOff]; zero: it was not
}

// NewLister returns a lister for the options' Since to Until. It refuses settings and tokens that cannot be right, before
// anything is asked.
func NewLister(opts Options) (*Lister, error) {
	opts = opts.withDefaults()
	c, err := newClient(&opts)
	if err != nil {
		return nil, err
	}
	return newLister(c, &opts), nil
}

func newLister(c *client, opts *Options) *Lister {
	l := &Lister{client: c, provider: opts.Provider, since: opts.Since, until: opts.Until, pace: pace{every: c.spec.Rate.Every()}, seen: map[sum]struct{}{}, inPass: map[sum]struct{}{}}
	if edge := opts.Now().Add(-c.spec.Window); c.spec.Window > 0 && l.since.Before(edge) {
		l.since, l.cut = edge, true
	}
	return l
}

// Since returns the time that is read from, and whether that is later than what was asked for, because the sender's list does
// not go back so far.
func (l *Lister) Since() (time.Time, bool) { return l.since, l.cut }

// Pages reads the list. Entries outside of the range may be among those that are read. Each request waits for the rate that the
// sender states. The sequence ends with the list, or with an error.
//
// A list that is counted in pages or entries can lose one at the border of two pages: while others before it vanish, or where
// entries of the same time are in another order at the next request. It is read until nothing new comes. A pass in which no entry
// came twice has seen all of them; after one in which some did, one more is made.
func (l *Lister) Pages(ctx context.Context) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for n, quiet := 1, 0; ; n++ {
			p, err := l.pass(ctx, n > 1, func(p Page) bool { return yield(p, nil) })
			if quiet++; p.fresh > 0 {
				quiet = 0
			}
			switch {
			case err != nil:
				yield(Page{}, err)
				return
			case p.left || !l.shifts() || n > 1 && quiet > 0 && (!p.twice || quiet > 1):
				return
			case n == maxPasses:
				yield(Page{}, lies("it was read %d times and still had something new: it changes faster than it can be read", n))
				return
			}
		}
	}
}

// shifts reports whether entries can be lost at the border of two pages.
func (l *Lister) shifts() bool {
	page := l.client.spec.List.Page
	return page != nil && (page.Kind == spec.PageNumber || page.Kind == spec.PageOffset)
}

// pass is what came of reading the list once.
type pass struct {
	// fresh are the entries that were new. At the head of a list that begins with the newest, those that came since the pass
	// before do not count.
	fresh int
	// twice is set if an entry came twice.
	twice bool
	// left is set if the caller wants no more.
	left bool
}

// pass reads the list once.
func (l *Lister) pass(ctx context.Context, again bool, yield func(Page) bool) (out pass, err error) {
	asked := map[sum]int{}
	request := l.first()
	l.position, l.inPass = 0, map[sum]struct{}{}
	head := again && l.client.spec.List.Sort == spec.Newest
	for n, barren := 1, 0; ; n++ {
		id := sumOf([]byte(request.url), request.body)
		if before := asked[id]; before > 0 {
			return out, lies("page %d leads back to page %d", n-1, before)
		}
		if asked[id] = n; n > maxPages {
			return out, lies("it has more than %d pages", maxPages)
		}
		a, err := l.client.do(ctx, request)
		if err != nil {
			return out, err
		}
		if n == 1 && !again {
			l.compareClocks(a)
		}
		p, err := parsePage(a.body, &l.client.spec.List)
		if err != nil {
			return out, err
		}
		page, over := l.read(p)
		if len(l.seen) > maxListed {
			return out, lies("it has more than %d entries; ask for a shorter time", maxListed)
		}
		if head {
			out.fresh += page.behind
		} else {
			out.fresh += len(page.Entries)
		}
		head = head && page.Repeated == 0
		out.twice = out.twice || page.twice
		if barren++; len(page.Entries) > 0 || again {
			barren = 0
		}
		switch {
		case !yield(page):
			out.left = true
			return out, nil
		case over:
			return out, nil
		case barren == maxBarren:
			return out, lies("%d pages in a row had nothing new", barren)
		}
		next, err := l.next(request, p, a)
		if err != nil || next == nil {
			return out, err
		}
		request = *next
	}
}

// compareClocks reads when the sender made an answer. https://www.rfc-editor.org/rfc/rfc9110#section-6.6.1
func (l *Lister) compareClocks(a *answer) {
	at, err := http.ParseTime(a.header.Get("Date"))
	if err != nil {
		return
	}
	l.answered = at
	if ahead := a.asked.Sub(at); ahead > clockOff {
		l.ahead = ahead
	}
}

// first returns the request for the first page.
func (l *Lister) first() ask {
	list := l.client.spec.List
	values := with(l.client.with, "since", formatTime(l.since.Add(-overlap), list.Unit))
	values["until"] = formatTime(l.until.Add(overlap), list.Unit)
	return ask{
		doing:  "listing events",
		method: list.Method,
		url:    l.client.path(list.Path, values),
		body:   l.client.body(list.Body, values),
		rights: l.client.spec.Rights,
		pace:   &l.pace,
	}
}

// read takes the entries of a page, and reports whether all that follows is before the range.
func (l *Lister) read(p page) (out Page, over bool) {
	old := 0
	for _, item := range p.items {
		e := l.entry(item)
		if !e.Time.IsZero() && e.Time.Before(l.since.Add(-overlap)) {
			old++
		}
		id := sumOf([]byte("id"), []byte(e.ID))
		if e.ID == "" {
			id = sumOf([]byte("raw"), []byte(item.Raw))
		}
		_, twice := l.inPass[id]
		out.twice = out.twice || twice
		if l.shifts() {
			l.inPass[id] = struct{}{}
		}
		if _, is := l.seen[id]; is {
			out.Repeated++
			continue
		}
		l.seen[id] = struct{}{}
		out.Entries = append(out.Entries, e)
		if out.Repeated > 0 {
			out.behind++
		}
	}
	return out, l.client.spec.List.Sort == spec.Newest && len(p.items) > 0 && old == len(p.items)
}

// entry reads one entry.
func (l *Lister) entry(item gjson.Result) Entry {
	list := l.client.spec.List
	e := Entry{ID: entryID(item, list.ID)}
	switch {
	case list.Failures:
		e.Delivery = Undelivered
	case list.Delivered != nil && list.Delivered.Holds(text(item, list.Delivered.In)):
		e.Delivery = Delivered
	case list.Delivered != nil:
		e.Delivery = Undelivered
	}
	if again := l.client.spec.Redeliver; again != nil && (again.When == nil || again.When.Holds(text(item, again.When.In))) {
		e.Again = entryID(item, again.ID)
	}
	if list.Event != nil {
		e.Events, e.Whole = l.client.events(list.Event, item)
		e.Whole = e.Whole && l.client.spec.Detail == nil
	}
	if list.Time != nil {
		e.Time = parseTime(text(item, list.Time.In), list.Time.Unit)
	} else if len(e.Events) > 0 {
		e.Time = e.Events[0].Time
	}
	return e
}

// entryID returns an id that can stand in a path, empty if there is none.
func entryID(item gjson.Result, in spec.Path) string {
	id := text(item, in)
	if len(id) > maxID || id == "." || id == ".." || !httpheader.ValidValue(id) {
		return ""
	}
	return strings.Clone(id) // a part of the page would keep all of it in memory
}

// events extracts the events of a request that the sender recorded, and reports whether all of its body is there.
func (c *client) events(rec *spec.Recorded, in gjson.Result) ([]hookonce.Event, bool) {
	header := recordedHeader(rec, in)
	body, whole := []byte(nil), false
	if found, ok := find(in, rec.Body); ok && found.Type != gjson.Null {
		whole = rec.Cut == nil || !rec.Cut.Holds(text(in, rec.Cut.In))
		if body = []byte(found.Raw); found.Type == gjson.String {
			body = []byte(found.Str)
		}
	}
	if whole && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	for _, secret := range c.opts.Provider.Profile().SecretHeaders {
		header.Del(secret)
	}
	events, err := c.opts.Provider.Listed(header, body, c.opts.Now())
	for i := range events {
		events[i].Source = c.opts.Source
	}
	return events, whole && err == nil
}

// maxHeaders is how many headers are taken of a recorded request.
const maxHeaders = 100

// recordedHeader returns the headers of a recorded request. What is no header is left out.
func recordedHeader(rec *spec.Recorded, in gjson.Result) http.Header {
	h := http.Header{}
	set := func(name, value string) {
		if len(h) < maxHeaders && httpheader.ValidName(name) && httpheader.ValidValue(value) {
			h.Set(strings.Clone(name), strings.Clone(value)) // as above
		}
	}
	if all, ok := find(in, rec.Headers); ok && all.IsObject() {
		all.ForEach(func(name, value gjson.Result) bool {
			if value.IsArray() {
				value = element(value, "0")
			}
			if value.Type == gjson.String || value.Type == gjson.Number {
				set(name.Str, value.String())
			}
			return true
		})
	}
	for name, path := range rec.Header {
		if value := text(in, path); value != "" {
			set(name, value)
		}
	}
	return h
}

// wanted reports whether a type is one of those listed.
func wanted(types []string, kind string) bool {
	return len(types) == 0 || kind == "" || slices.ContainsFunc(types, func(want string) bool {
		begin, star := strings.CutSuffix(want, "*")
		return kind == want || star && strings.HasPrefix(kind, begin)
	})
}
