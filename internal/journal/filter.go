package journal

import (
	"strconv"
	"strings"
	"time"
)

// Filter chooses events. The zero Filter matches all; every field that is set narrows it.
type Filter struct {
	Source string `json:"source,omitempty"`
	// Type is a pattern for the event's type: text in which * stands for any characters.
	Type string `json:"type,omitempty"`
	// Resource is what the event is about, whole as [Event] has it, or one of the parts of which it was made
	// with hookonce.JoinKey: see [ResourcePart].
	Resource string `json:"resource,omitempty"`
	// State matches events with a delivery in that state, or, [Done], without an open delivery.
	State State `json:"state,omitempty"`
	// Destination restricts what State looks at to the deliveries to it, and matches events that were
	// ever attempted there or are to be.
	Destination string `json:"destination,omitempty"`
	// Error and Status match events with a delivery that is failed or dead for an error of that kind, or after an answer
	// with that status. With State it is in that state, and with Destination to that destination.
	Error  ErrorKind `json:"error,omitempty"`
	Status int       `json:"status,omitempty"`
	// Seen matches events of which a copy of that kind came.
	Seen ReceiptKind `json:"seen,omitempty"`
	// Unrouted matches events that no route wanted when they came.
	Unrouted bool `json:"unrouted,omitempty"`
	// Since and Until bound when the event was accepted, to the millisecond: from Since on, and before
	// Until. Zero: no bound.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// ByError reports whether the filter narrows to certain errors.
func (f *Filter) ByError() bool { return f.Error != "" || f.Status != 0 }

// MatchError reports whether the last error of a delivery, which is failed or dead, is one of those that the filter
// narrows to.
func (f *Filter) MatchError(d *Delivery) bool {
	return (f.Error == "" || d.Kind == f.Error) && (f.Status == 0 || d.Status == f.Status)
}

// MatchType reports whether an event of that type is one that the filter matches.
func (f *Filter) MatchType(kind string) bool {
	parts := strings.Split(f.Type, "*")
	first, last := parts[0], parts[len(parts)-1]
	if f.Type == "" || len(parts) == 1 {
		return f.Type == "" || kind == f.Type
	}
	if len(kind) < len(first)+len(last) || !strings.HasPrefix(kind, first) || !strings.HasSuffix(kind, last) {
		return false
	}
	kind = kind[len(first) : len(kind)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(kind, part)
		if !found {
			return false
		}
		kind = rest
	}
	return true
}

// Open returns the states in which an event has to have a delivery to match. None: it need not have one.
func (f *Filter) Open() []State {
	switch {
	case f.State != "" && (f.State != Done || f.ByError()): // done for an error: that is no delivery
		return []State{f.State}
	case f.ByError():
		return []State{Failed, Dead}
	}
	return nil
}

// Window returns the identifiers that can match: from first on, and below end.
func (f *Filter) Window() (first, end int64) {
	first, end = boundary(f.Since), maxID
	if !f.Until.IsZero() {
		end = boundary(f.Until)
	}
	return first, end
}

// boundary is FirstID for a time that people name: those that no identifier reaches are beyond all.
func boundary(t time.Time) int64 {
	if t.UnixMilli()-idEpoch >= maxID>>(writerBits+counterBits) {
		return maxID
	}
	return FirstID(t)
}

// maxID is above every identifier.
const maxID = 1<<63 - 1

// ResourcePart is how a part stands in a resource that has several. A part that is looked for inside another one is
// found too.
func ResourcePart(part string) string { return strconv.Itoa(len(part)) + ":" + part }
