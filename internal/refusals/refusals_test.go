package refusals_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hookonce/hookonce/internal/refusals"
)

// A source has its last refusals, newest first, apart from those of others and of unknown paths.
func TestLog(t *testing.T) {
	l := refusals.NewLog("billing", "shop")
	for i := range 2 * refusals.PerSource {
		l.Add(refusals.Refusal{Source: "billing", At: time.Unix(int64(i), 0), Address: "192.0.2.1"})
	}
	l.Add(refusals.Refusal{Source: "nobody", Words: "lost"})
	last, total := l.Of("billing")
	if len(last) != refusals.PerSource || total != 2*refusals.PerSource || last[0].At.Unix() != 2*refusals.PerSource-1 {
		t.Errorf("%d of %d, the newest of %v", len(last), total, last[0].At.Unix())
	}
	if last, total := l.Of("shop"); len(last) != 0 || total != 0 {
		t.Errorf("another source has %d of %d", len(last), total)
	}
	if last, _ := l.Of(""); len(last) != 1 || last[0].Source != "" || last[0].Words != "lost" {
		t.Errorf("an unknown path has %+v", last)
	}
	if last, total := l.Of("nobody"); last != nil || total != 0 {
		t.Errorf("a source that is not configured has %+v", last)
	}
	l.Keep([]string{"shop", "nobody"})
	if last, _ := l.Of("billing"); last != nil {
		t.Error("a source that is gone is remembered")
	}
	if last, _ := l.Of(""); len(last) != 1 {
		t.Error("unknown paths are forgotten by a reload")
	}
}

// One stranger does not have all others forgotten, whatever addresses of its network it uses.
func TestOneStrangerLeavesTheOthers(t *testing.T) {
	for name, address := range map[string]func(int) string{
		"one address":            func(int) string { return "192.0.2.1" },
		"a network of version 6": func(i int) string { return fmt.Sprintf("2001:db8::%x", i) },
	} {
		t.Run(name, func(t *testing.T) {
			l := refusals.NewLog("billing")
			l.Add(refusals.Refusal{Source: "billing", Address: "198.51.100.7", Reason: "signature_mismatch"})
			for i := range 10 * refusals.PerSource {
				l.Add(refusals.Refusal{Source: "billing", Address: address(i)})
			}
			last, _ := l.Of("billing")
			if !slices.ContainsFunc(last, func(r refusals.Refusal) bool { return r.Address == "198.51.100.7" }) {
				t.Error("the genuine sender was pushed out")
			}
		})
	}
}

// However many sources there are, all of them together stay within what is said, and each has some.
func TestManySourcesShareTheRoom(t *testing.T) {
	l := refusals.NewLog("billing")
	fill := func(source string) int {
		for i := range refusals.PerSource {
			l.Add(refusals.Refusal{Source: source, At: time.Unix(int64(i), 0)})
		}
		last, _ := l.Of(source)
		return len(last)
	}
	if n := fill("billing"); n != refusals.PerSource {
		t.Errorf("one source alone has %d", n)
	}
	for _, sources := range []int{100, 1000} {
		names := []string{"billing"}
		for i := range sources - 1 {
			names = append(names, fmt.Sprint("source", i))
		}
		l.Keep(names)
		last, total := l.Of("billing")
		switch n := len(last); {
		case n < refusals.LeastPerSource || n > refusals.LeastPerSource && (sources+1)*n*refusals.EntryBytes > refusals.MaxBytes:
			t.Errorf("with %d sources each keeps %d", sources, n)
		case last[0].At.Unix() != refusals.PerSource-1 || total < refusals.PerSource:
			t.Errorf("with %d sources the newest is %v of %d", sources, last[0].At.Unix(), total)
		case fill("billing") != n || fill("source7") != n || fill("") != n:
			t.Errorf("with %d sources not each has room for %d", sources, n)
		}
	}
}

// A full log is no dearer, not even where one network sends all the time and all older entries are of others.
func TestAFullLogCostsNoMore(t *testing.T) {
	l := refusals.NewLog("billing")
	for i := range refusals.PerSource - 2 {
		l.Add(refusals.Refusal{Source: "billing", Address: fmt.Sprintf("2001:db8:%x::1", i+1)})
	}
	add := func() { l.Add(refusals.Refusal{Source: "billing", Address: "2001:db8::1"}) }
	add()
	add()
	if n := testing.AllocsPerRun(100, add); n > 20 {
		t.Errorf("each takes %v allocations", n)
	}
}

// What strangers choose is cut and plain, and the memory of a source is what is said.
func TestWhatStrangersChooseIsBounded(t *testing.T) {
	l := refusals.NewLog("billing")
	header := http.Header{}
	for i := range 2000 {
		header[fmt.Sprintf("X-%d-\x1b[2J%s", i, strings.Repeat("ÿ\xff", 200))] = []string{"fake-secret"}
	}
	long := strings.Repeat("\x1b[31m\xff\u202e fake ", 10_000)
	before := allocated()
	for range 3 * refusals.PerSource {
		l.Add(refusals.Refusal{Source: "billing", Address: long, Method: long, Path: long, Words: long, Header: long, Headers: refusals.Names(header), UnverifiedKey: long})
	}
	if grown := allocated() - before; grown > refusals.PerSource*refusals.EntryBytes {
		t.Errorf("a source takes %d bytes, which is said to be at most %d", grown, refusals.PerSource*refusals.EntryBytes)
	}
	last, _ := l.Of("billing")
	for _, text := range append([]string{last[0].Address, last[0].Method, last[0].Path, last[0].Words, last[0].Header, last[0].UnverifiedKey}, last[0].Headers...) {
		if len(text) > 600 || !utf8.ValidString(text) || strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
			t.Errorf("it has %d bytes: %.80q", len(text), text)
		}
		if strings.Contains(text, "fake-secret") {
			t.Errorf("the value of a header is in %q", text)
		}
	}
	runtime.KeepAlive(l)
}

func allocated() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
