package spec

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

// maxLabel is how much of a type, resource, tenant or attempt id is kept, in bytes.
const maxLabel = 255

// extractor is an [Extract] in compiled form. The rules for the key belong to the verifiers, because
// what is signed depends on the way of signing.
type extractor struct {
	provider                                                   string
	onRepeat                                                   Repeat
	attemptID, kind, action, resource, tenant, attempt, reason []value

	time    []moment
	same    []value
	logical []logical
	order   *order

	digesters sync.Pool
}

type moment struct {
	in   value
	unit Unit
}

type logical struct {
	Logical
	rule keyRule
}

type order struct {
	by    value
	unit  Unit
	scope []value
}

// events extracts the events of a verified request into d.
func (x *extractor) events(r *reading, by *verifier, d *hookonce.Verified) {
	if r.splitter == nil {
		d.Events, d.Unreadable = x.single(r, by)
		return
	}
	batch, err := x.batch(r, by)
	switch {
	case err != nil:
		d.Events, d.Unreadable = []hookonce.Event{x.opaque(r)}, err
	case r.req.Lazy:
		d.Batch = batch
	default:
		d.Events = make([]hookonce.Event, 0, batch.Len)
		for ev := range batch.All {
			d.Events = append(d.Events, *ev)
		}
	}
}

// errEnough ends a walk over the items of a batch.
var errEnough = errors.New("enough")

// batch goes over the items once, to see that they can be read and how much they are, and leaves building the
// events for later.
func (x *extractor) batch(r *reading, by *verifier) (*hookonce.Batch, error) {
	b := &hookonce.Batch{}
	text, form := r.enclosed()
	most := maxGrowth * (int64(len(r.req.Body)) + 1024)
	err := r.splitter.each(text, func(it item) error {
		b.Len++
		if b.Size += int64(form.size(it)); b.Size > most { // what else the form has is in every body
			return errGrows
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.All = func(yield func(*hookonce.Event) bool) {
		defer r.leave()
		_ = r.splitter.each(text, func(it item) error { // the same items as before
			r.enter(it)
			ev := x.event(r, by)
			ev.Body = form.body(it)
			if !yield(&ev) {
				return errEnough
			}
			return nil
		})
	}
	return b, nil
}

// enclosed returns the document of the request as it is written, and the form around it: the body is it, or a field of the form
// that the body is holds it.
func (r *reading) enclosed() ([]byte, wrapping) {
	if r.formField == "" || checkJSON(r.req.Body) == nil {
		return r.req.Body, wrapping{}
	}
	document, err := r.embedded(errNotForm)
	if err != nil {
		return r.req.Body, wrapping{} // which cannot be read either
	}
	return document, wrapping{r.formField, r.fields()}
}

// wrapping is the form around a document. The zero value is none.
type wrapping struct {
	field  string
	fields url.Values
}

// around returns the body with another document in its place.
func (w wrapping) around(document []byte) []byte {
	if w.field == "" {
		return document
	}
	fields := maps.Clone(w.fields)
	fields[w.field] = []string{view(document)}
	return []byte(fields.Encode())
}

// body returns the body of the event that an item is.
func (w wrapping) body(it item) []byte { return w.around(it.body()) }

// size is how long that is.
func (w wrapping) size(it item) int {
	if w.field == "" {
		return it.size()
	}
	return len(w.body(it))
}

// single extracts the event of a request that carries one.
func (x *extractor) single(r *reading, by *verifier) ([]hookonce.Event, error) {
	if !r.tree.empty() {
		if _, err := r.document(); err != nil {
			return []hookonce.Event{x.unread(r, by)}, err
		}
	}
	return []hookonce.Event{x.event(r, by)}, nil
}

// enter moves the reading to one item of the batch, and leave back to the whole request.
func (r *reading) enter(it item) {
	r.itemText, r.item = it.text, r.itemTree.find(it.text)
	if r.place == nil || r.place != it.place { // the items of one array have one parent: it may be large
		r.place, r.parent = it.place, r.outerTree.find(it.parent)
	}
}

func (r *reading) leave() { r.itemText, r.item, r.parent, r.place = "", nil, nil, nil }

// event extracts the event, of the request or of the item that the reading is at.
func (x *extractor) event(r *reading, by *verifier) hookonce.Event {
	ev := x.bare(r)
	ev.Digest = x.digest(r)
	x.identify(r, by, &ev)
	x.describe(r, &ev)
	for i := range x.logical {
		if l := &x.logical[i]; ev.Logical == "" && (len(l.Types) == 0 || slices.Contains(l.Types, ev.Type)) {
			ev.Logical = l.rule.read(r)
		}
	}
	ev.Scope = x.scope(r)
	if x.order != nil {
		text := r.get(&x.order.by)
		if x.order.unit == "" {
			ev.Version = version(text)
		}
		ev.Rank = x.order.rank(text, r.req.Now)
	}
	return ev
}

// describe says what the event is about, as far as that can be read.
func (x *extractor) describe(r *reading, ev *hookonce.Event) {
	ev.AttemptID = label(r.first(x.attemptID))
	ev.Type = eventType(r.first(x.kind), r.first(x.action))
	ev.Time = r.moment(x.time)
	ev.Resource = label(r.first(x.resource))
	ev.Tenant = label(r.first(x.tenant))
	ev.SenderAttempt = label(r.first(x.attempt))
	ev.SenderReason = label(r.first(x.reason))
}

// scope returns what the order of the event holds for, empty if a part of it is absent.
func (x *extractor) scope(r *reading) string {
	var room [4]string
	parts := room[:0]
	if tenant := r.first(x.tenant); tenant != "" {
		parts = append(parts, tenant)
	}
	if x.order == nil || len(x.order.scope) == 0 {
		parts = append(parts, r.first(x.resource))
	} else {
		for i := range x.order.scope {
			parts = append(parts, r.get(&x.order.scope[i]))
		}
	}
	if slices.Contains(parts, "") {
		return ""
	}
	if len(parts) == 1 && !looksJoined(parts[0]) {
		return hookonce.NormalKey(strings.Clone(parts[0]))
	}
	return hookonce.NormalKey(joined(parts))
}

// farAhead is how far behind the sender's clock that of the receiver may be.
const farAhead = 24 * time.Hour

// rank returns the rank that a version or a time makes, none if the text is neither. A time before 1970
// stands for one that is not known, and makes none. Nor does one of days after now, when the event came: it is no time at
// which anything happened, and everything after it would be stale until then. Now may be zero.
func (o *order) rank(text string, now time.Time) hookonce.Rank {
	if o.unit == "" {
		if n, ok := parseDigits(version(text), 1<<62); ok {
			return hookonce.Version(n)
		}
		return hookonce.Rank{}
	}
	if at, ok := (&moment{unit: o.unit}).parse(text); ok && at.UnixMicro() > 0 && (now.IsZero() || at.Before(now.Add(farAhead))) {
		return hookonce.Timestamp(at)
	}
	return hookonce.Rank{}
}

// unread returns the event of a request whose body cannot be read, with what its header says of it. Without the body
// nobody knows what it comes after, nor whether it is a logical duplicate.
func (x *extractor) unread(r *reading, by *verifier) hookonce.Event {
	ev := x.opaque(r)
	x.identify(r, by, &ev)
	x.describe(r, &ev)
	return ev
}

// opaque returns the unkeyed event of a request that cannot be taken apart. What its header says may be of any of them.
func (x *extractor) opaque(r *reading) hookonce.Event {
	ev := x.bare(r)
	ev.Digest = digestOf(r.req.Body)
	return ev
}

// bare returns an event about which nothing is known but the request that brought it.
func (x *extractor) bare(r *reading) hookonce.Event {
	return hookonce.Event{Provider: x.provider, Body: r.req.Body, Header: r.req.Header}
}

// moment returns the first time that can be read, zero if there is none.
func (r *reading) moment(moments []moment) time.Time {
	for i := range moments {
		if at, ok := moments[i].parse(r.get(&moments[i].in)); ok {
			return at
		}
	}
	return time.Time{}
}

// parse reads a time. Seconds may have a fraction here, which is left out; where a time is signed it
// would be another text for the same time.
func (m *moment) parse(text string) (time.Time, bool) {
	if whole, fraction, ok := strings.Cut(text, "."); ok && m.unit == Seconds {
		if _, digits := parseDigits(fraction, 1<<62); digits {
			text = whole
		}
	}
	return m.unit.parse(text)
}

// version returns a version number without leading zeros, empty if it is not an integer.
func version(text string) string {
	if _, ok := parseDigits(text, 1<<62); !ok || len(text) > 18 {
		return ""
	}
	if text = strings.TrimLeft(text, "0"); text == "" {
		return "0"
	}
	return strings.Clone(text)
}

// eventType joins type and action with a dot.
func eventType(kind, action string) string {
	if kind == "" || action == "" {
		return label(kind)
	}
	return label(kind + "." + action)
}

// label returns text as a copy that can be logged, stored and sent in a header: valid UTF-8, without
// control characters, at most maxLabel bytes.
func label(text string) string {
	if text = shortened(text); printable(text) {
		return strings.Clone(text)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexFunc(text, unicode.IsControl) >= 0 {
		text = strings.Map(func(c rune) rune {
			if unicode.IsControl(c) {
				return utf8.RuneError
			}
			return c
		}, text)
	}
	return strings.Clone(shortened(text)) // U+FFFD is longer than what it stands for
}

// printable reports whether all of a text is printable ASCII, as nearly every label is.
func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// shortened returns at most maxLabel bytes of text, and no part of a character at its end.
func shortened(text string) string {
	if len(text) <= maxLabel {
		return text
	}
	end := maxLabel
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// digestSize is how many bytes of the SHA-256 identify the content of an event.
const digestSize = 16

// digestOf returns the digest of a whole body or item.
func digestOf(content []byte) []byte {
	sum := sha256.Sum256(content)
	return append([]byte(nil), sum[:digestSize]...)
}

// digester hashes parts of a document.
type digester struct {
	hash.Hash
	frame [8]byte
	sum   []byte
}

func newDigester() any { return &digester{Hash: sha256.New()} }

// digest returns the digest of the content that is equal in every copy of the event: of the parts
// that the specification names, or of the whole if it names none, if none of them is there, or if one
// of them is ambiguous.
func (x *extractor) digest(r *reading) []byte {
	present := 0
	for i := range x.same {
		f := r.part(&x.same[i])
		if f.ambiguous {
			return r.wholeDigest()
		}
		if f.found {
			present++
		}
	}
	if present == 0 {
		return r.wholeDigest()
	}
	d := x.digesters.Get().(*digester)
	defer x.digesters.Put(d)
	d.Reset()
	for i := range x.same {
		d.add(r.part(&x.same[i]))
	}
	d.sum = d.Sum(d.sum[:0])
	return append([]byte(nil), d.sum[:digestSize]...)
}

// wholeDigest is that of the item the reading is at, or of the body.
func (r *reading) wholeDigest() []byte {
	if r.itemText != "" {
		return digestOf(bytesOf(r.itemText))
	}
	return digestOf(r.req.Body)
}

// part returns the field that belongs to a value. Values that are not JSON count by their text.
func (r *reading) part(v *value) field {
	if v.path == nil {
		text := r.get(v)
		return field{found: text != "", raw: text}
	}
	if doc := r.in(v); v.node < len(doc) {
		return doc[v.node]
	}
	return field{}
}

// add hashes the length of the field's JSON text, zero if it is not there, and the text.
func (d *digester) add(f field) {
	binary.BigEndian.PutUint64(d.frame[:], uint64(len(f.raw)))
	d.Write(d.frame[:])
	d.Write(bytesOf(f.raw))
}

// identify gives the event its key, in the way that a repetition asks for. A rule that asks the body is of no use where
// that could not be read: an optional part that is not seen would make one key of different events.
func (x *extractor) identify(r *reading, by *verifier, ev *hookonce.Event) {
	if x.onRepeat == Off {
		return
	}
	for i := range by.keys {
		rule := &by.keys[i]
		if rule.inBody && r.docErr != nil {
			continue
		}
		key := rule.read(r)
		if key == "" {
			continue
		}
		ev.Key, ev.KeyOrigin, ev.KeySigned = key, rule.origin, rule.signed
		switch x.onRepeat {
		case KeepLatest:
			// Other content under the same key is another edition: the content is part of the key.
			ev.Key = hookonce.NormalKey(hookonce.JoinKey(key, hex.EncodeToString(ev.Digest)))
			ev.KeyOrigin += " + content"
			ev.KeySigned = ev.KeySigned && by.covers == CoversBody
		case Coalesce:
			ev.Coalesce = true
		}
		return
	}
}
