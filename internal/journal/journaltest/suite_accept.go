package journaltest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

var acceptCases = []testCase{
	{"a new key is stored whole and due at once", func(c *suite) {
		e := c.stored("evt_1")
		c.matches(c.take1("evt_1"), e, journal.Held{EventID: e.ID, Destination: "app", Token: 1}, 1)
		c.takeKeys(10)
	}},
	{"an empty batch is nothing", func(c *suite) {
		c.accept()
		c.open(nil)
	}},
	{"every destination gets its delivery", func(c *suite) {
		c.fresh(c.entry("evt_1", to("a", "b", "c")))
		var got []string
		for _, w := range c.take(10) {
			got = append(got, w.Destination)
		}
		slices.Sort(got)
		if !slices.Equal(got, []string{"a", "b", "c"}) {
			c.Fatalf("took deliveries to %q", got)
		}
	}},
	{"without a destination the event is done", func(c *suite) {
		e := c.stored("evt_1", to())
		c.open(nil)
		c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID, Done: true})
		c.open(nil)
	}},
	{"held entries are processing under token 1 until their lease ends", func(c *suite) {
		e := c.stored("evt_1", hold)
		c.open(map[journal.State]int64{journal.Processing: 1})
		c.pass(lease - time.Millisecond)
		c.takeKeys(10)
		c.pass(time.Millisecond)
		c.matches(c.take1("evt_1"), e, journal.Held{EventID: e.ID, Destination: "app", Token: 2}, 1)
	}},
	{"a held entry is finished under token 1", func(c *suite) {
		e := c.stored("evt_1", hold)
		c.finish1(journal.Outcome{Held: journal.Held{EventID: e.ID, Destination: "app", Token: 1}, State: journal.Done, Started: c.now}, true)
		c.open(nil)
	}},
	{"held and other entries share a batch", func(c *suite) {
		c.fresh(c.entry("held", hold), c.entry("free"))
		c.takeKeys(10, "free")
	}},
	{"an empty key is always new", func(c *suite) {
		c.fresh(c.entry(""), c.entry(""))
		c.fresh(c.entry(""))
		if got := len(c.take(10)); got != 3 {
			c.Fatalf("took %d deliveries of 3 unkeyed events", got)
		}
	}},
	{"keys are scoped by source", func(c *suite) {
		c.fresh(c.entry("evt_1"), c.entry("evt_1", func(e *journal.Record) { e.Source = "shop" }))
		if got := len(c.take(10)); got != 2 {
			c.Fatalf("took %d deliveries of 2 events", got)
		}
	}},
	{"keys that only look alike are different", func(c *suite) {
		c.fresh(c.entry("evt"), c.entry("EVT"), c.entry("evt "), c.entry("évt"), c.entry("é́vt"))
	}},
	{"absent header, body, type and digest are stored", func(c *suite) {
		e := c.stored("evt_1", func(e *journal.Record) { e.Header, e.Facts, e.Body, e.Type, e.Digest = nil, nil, nil, "", nil })
		c.matches(c.take1("evt_1"), e, journal.Held{EventID: e.ID, Destination: "app", Token: 1}, 1)
		c.accept1(c.entry("evt_1", func(e *journal.Record) { e.Digest = nil }), journal.Result{Status: journal.Duplicate, ID: e.ID})
	}},
	{"large and binary bodies come back byte for byte", func(c *suite) {
		big := c.entry("big", func(e *journal.Record) { e.Body = bytes.Repeat([]byte("\x00\xff'\\ 0123456789"), 100_000) })
		odd := c.entry("odd", func(e *journal.Record) { e.Body = []byte("\x00\x01\xfe\xff") })
		c.fresh(big, odd)
		for i, w := range c.takeKeys(10, "big", "odd") {
			if want := []*journal.Record{big, odd}[i]; !bytes.Equal(w.Body, want.Body) {
				c.Errorf("the body of %s changed on the way", w.Key)
			}
		}
	}},
	{"the longest keys are stored", func(c *suite) {
		c.fresh(c.entry(strings.Repeat("k", hookonce.MaxKeyLen), func(e *journal.Record) { e.Source = strings.Repeat("s", hookonce.MaxKeyLen) }))
	}},
	{"an entry that cannot be stored is refused and leaves its neighbours", func(c *suite) {
		bad := []*journal.Record{
			c.entry("no source", func(e *journal.Record) { e.Source = "" }),
			c.entry("a\x00b"), c.entry("\xff"), c.entry(strings.Repeat("k", hookonce.MaxKeyLen+1)),
			c.entry("type", func(e *journal.Record) { e.Type = "a\x00b" }),
			c.entry("digest", func(e *journal.Record) { e.Digest = make([]byte, 33) }),
			c.entry("nowhere", to("")),
		}
		batch := append([]*journal.Record{c.entry("first")}, bad...)
		results := c.accept(append(batch, c.entry("last"))...)
		for i, r := range results[1 : len(results)-1] {
			if !errors.Is(r.Err, hookonce.ErrInvalidRef) {
				c.Errorf("entry %q: error %v, want ErrInvalidRef", bad[i].Key, r.Err)
			}
		}
		c.takeKeys(100, "first", "last")
	}},
	{"a row that the database refuses leaves its neighbours", poison},
	{"a copy of a refused row is tried itself", func(c *suite) {
		taken := c.stored("taken")
		bad := c.entry("evt_1", func(e *journal.Record) { e.ID = taken.ID })
		good := c.entry("evt_1")
		results := c.accept(bad, good)
		if results[0].Err == nil || results[1] != (journal.Result{Status: journal.Accepted, ID: good.ID}) {
			c.Fatalf("results %+v: want the second copy accepted, the first refused for its id", results)
		}
	}},
	{"a large batch is one call", func(c *suite) {
		c.storedMany(1000)
		c.open(map[journal.State]int64{journal.Pending: 1000})
	}},
}

// poison puts one to three refused rows at every kind of place in a batch.
func poison(c *suite) {
	c.f.Refuse(c, "poison")
	n := 0
	for _, bad := range [][]int{{0}, {6}, {3}, {2, 3}, {0, 1, 6}, {0, 1, 2, 3, 4, 5, 6}} {
		var batch []*journal.Record
		for i := range 7 {
			n++
			key := fmt.Sprintf("evt_%d", n)
			if slices.Contains(bad, i) {
				key = "poison"
			}
			batch = append(batch, c.entry(key))
		}
		old := c.stored(fmt.Sprintf("old_%d", n))
		results := c.accept(append(batch, c.entry(old.Key), c.entry("a\x00b"))...)
		for i, e := range batch {
			if e.Key == "poison" {
				if results[i].Err == nil {
					c.Errorf("bad rows %v: row %d = %+v, want an error", bad, i, results[i])
				}
				continue
			}
			if results[i] != (journal.Result{Status: journal.Accepted, ID: e.ID}) {
				c.Errorf("bad rows %v: row %d = %+v, want it accepted", bad, i, results[i])
			}
			c.accept1(c.entry(e.Key), journal.Result{Status: journal.Duplicate, ID: e.ID})
		}
		if results[7] != (journal.Result{Status: journal.Duplicate, ID: old.ID}) {
			c.Errorf("bad rows %v: the copy got %+v", bad, results[7])
		}
		if !errors.Is(results[8].Err, hookonce.ErrInvalidRef) {
			c.Errorf("bad rows %v: the invalid entry got %+v", bad, results[8])
		}
	}
	for _, w := range c.take(1000) {
		if w.Key == "poison" {
			c.Error("a refused event is delivered")
		}
	}
}
