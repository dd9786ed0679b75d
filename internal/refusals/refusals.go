// Package refusals remembers the last requests that were refused, so that somebody who asks why an event did not
// arrive can be told. It holds no body, no secret and no value of a header but what would have been the event's key, and it
// holds it in memory alone.
package refusals

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Refusal is a request that was not acknowledged. Texts that its sender chose are cut and plain when they come out of
// a [Log].
type Refusal struct {
	At     time.Time
	Source string // empty: no source is configured under the path
	// Address is where the request came from, as far as it can be told.
	Address string
	Method  string
	// Path begins as the request's does; what may be secret in it is left out.
	Path string
	// Status is that of the answer, and Reason its short name, of a closed set.
	Status int
	Reason string
	// Words are a sentence that says what was wrong, and Header the name of the header that was missing, if one was.
	Words  string
	Header string
	// Unverified says that the request was read, and is not authentic: see [Refusal.Command].
	Unverified bool
	// Headers are the names of those that came, sorted.
	Headers []string
	Body    Body
	// UnverifiedKey is the key that the event would have, or the first one, as the request says it: unless that is authentic
	// anybody may have made it up. It is for people who look for an event; nothing is decided by it. Empty: it is not known.
	UnverifiedKey string
}

// Body is what is known of the body of a refused request. It is zero if the request was refused before its body was
// looked at.
type Body struct {
	Read   bool   // it was looked at
	Length int64  // in bytes, as far as it was read
	SHA256 string // of those bytes, in hexadecimal
}

// BodyOf describes what was read of a body.
func BodyOf(read []byte) Body {
	sum := sha256.Sum256(read)
	return Body{Read: true, Length: int64(len(read)), SHA256: hex.EncodeToString(sum[:])}
}

// Bounds of what a [Log] holds.
const (
	// PerSource is how many refusals of a source are remembered at most, and of all paths under which there is none. Where
	// there are many sources each has an equal share of what fits into MaxBytes, and LeastPerSource at least.
	PerSource      = 200
	LeastPerSource = 20
	// MaxBytes is about how much memory a log takes at most, unless LeastPerSource of each source take more: 75 kB a source.
	MaxBytes = 32 << 20
	// EntryBytes is about how much one refusal takes at most.
	EntryBytes = maxWords + maxNames + maxNamed*32 + maxPath + maxKey + 512

	maxWords  = 512  // of each text that is a sentence
	maxNames  = 1024 // of the names of headers together
	maxName   = 64   // of one of them
	maxNamed  = 40   // how many there are
	maxPath   = 160
	maxMethod = 16
	maxKey    = 255 // no key is longer
)

// Log remembers the last refusals of each source. It is safe for concurrent use, and does nothing for requests that
// are not refused.
type Log struct {
	mu    sync.Mutex
	rings map[string]*ring
	room  int // how many refusals each ring has room for
}

// NewLog returns a log of the sources with these names.
func NewLog(sources ...string) *Log {
	l := &Log{}
	l.Keep(sources)
	return l
}

// Keep says which sources there are: what is remembered of others is forgotten.
func (l *Log) Keep(sources []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.rings
	l.rings = make(map[string]*ring, len(sources)+1)
	l.room = min(PerSource, max(LeastPerSource, MaxBytes/EntryBytes/(len(sources)+1)))
	for _, name := range append([]string{""}, sources...) {
		l.rings[name] = before[name]
		if l.rings[name] == nil {
			l.rings[name] = &ring{from: map[string]int{}}
		}
		l.rings[name].fit(l.room)
	}
}

// Add remembers a refusal. One of a source that the log does not know counts as one of an unknown path.
func (l *Log) Add(r Refusal) {
	r.trim()
	one := entry{r, neighbours(r.Address)}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.rings[r.Source]
	if of == nil {
		one.Source, of = "", l.rings[""]
	}
	of.add(one, l.room)
}

// Of returns what is remembered of a source, newest first; of "" the refusals under paths that no source has. Total
// is how many there were since the process began, or the source was configured. A source that is not known has none.
func (l *Log) Of(source string) (last []Refusal, total int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.rings[source]
	if of == nil {
		return nil, 0
	}
	last = make([]Refusal, 0, len(of.kept))
	for _, one := range slices.Backward(of.kept) {
		last = append(last, one.Refusal)
	}
	return last, of.total
}

// Totals returns how many there were of each source, as [Log.Of] does.
func (l *Log) Totals() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	totals := make(map[string]int64, len(l.rings))
	for name, of := range l.rings {
		totals[name] = of.total
	}
	return totals
}

// Names returns the names of the headers, for [Refusal.Headers]: sorted, and as many as are kept.
func Names(h http.Header) []string {
	var names []string
	size := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		name = plain(name, maxName)
		if size += len(name); size > maxNames || len(names) == maxNamed {
			return append(names, "…")
		}
		names = append(names, name)
	}
	return names
}

// trim cuts what a stranger chose, and makes it plain.
func (r *Refusal) trim() {
	r.Method, r.Path = plain(r.Method, maxMethod), plain(r.Path, maxPath)
	r.Words, r.Header = plain(r.Words, maxWords), plain(r.Header, maxName)
	r.Address, r.UnverifiedKey = plain(r.Address, maxName), plain(r.UnverifiedKey, maxKey)
}

// plain returns the beginning of s without what steers a terminal, in memory of its own: what s was cut from is not
// held.
func plain(s string, most int) string {
	if len(s) > most {
		end := most
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "…"
	}
	return strings.Clone(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s))
}

// ring is what is remembered of one source.
type ring struct {
	kept  []entry        // oldest first
	from  map[string]int // how many there are of them by [neighbours]
	total int64
}

// entry is a refusal with its [neighbours].
type entry struct {
	Refusal
	near string
}

// add remembers one. Where there is no room, the oldest makes room of those from the address that has most of them, so
// that one stranger does not have all others forgotten.
func (r *ring) add(one entry, room int) {
	r.total++
	r.fit(room - 1)
	r.kept = append(r.kept, one)
	r.from[one.near]++
}

// fit forgets until there are at most so many.
func (r *ring) fit(room int) {
	for len(r.kept) > room {
		r.forget()
	}
}

func (r *ring) forget() {
	most := 0
	for _, n := range r.from {
		most = max(most, n)
	}
	i := slices.IndexFunc(r.kept, func(k entry) bool { return r.from[k.near] == most })
	near := r.kept[i].near
	r.kept = slices.Delete(r.kept, i, i+1)
	if r.from[near]--; r.from[near] == 0 {
		delete(r.from, near)
	}
}

// neighbours returns what stands for all addresses that one sender can have at will.
func neighbours(address string) string {
	if a, err := netip.ParseAddr(address); err == nil && a.Is6() {
		return netip.PrefixFrom(a.WithZone(""), 64).Masked().String()
	}
	return address
}
