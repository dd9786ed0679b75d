package hookonce

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// PurgeKind is what a purge deletes. The zero value is [PurgeEvents].
type PurgeKind string

// What can be purged. Each is deleted by a purge of its own kind only.
const (
	// PurgeEvents are claims of events and requests that are done, with the responses that are kept. A
	// copy that comes later is new.
	PurgeEvents PurgeKind = "events"
	// PurgeFailed are claims of events and requests that failed or are dead. A copy that comes later is
	// new, and what pinned the key to its content is forgotten. Their rows are what tells that something was
	// received and never done, so keep them for as long as anybody may ask.
	PurgeFailed PurgeKind = "failed"
	// PurgeOnce are the keys that [Once] took. Work that is asked for again later is done again.
	PurgeOnce PurgeKind = "once"
	// PurgeVersions are the newest versions that [Newer] recorded. Whatever comes later is the newest.
	PurgeVersions PurgeKind = "versions"
	// PurgeStates are where [Transition] left its state machines. They begin anew.
	PurgeStates PurgeKind = "states"
	// PurgeEffects are effects of an outbox that are done. One that is enqueued again later is new.
	PurgeEffects PurgeKind = "effects"
)

// PurgeKinds returns all kinds.
func PurgeKinds() []PurgeKind {
	return []PurgeKind{PurgeEvents, PurgeFailed, PurgeOnce, PurgeVersions, PurgeStates, PurgeEffects}
}

// PurgeRequest says what [Purger.Purge] deletes.
type PurgeRequest struct {
	// Kind is what is deleted.
	Kind PurgeKind
	// Source narrows it to one source; of [PurgeOnce] that is a scope. Empty: all of them. Versions and
	// states have none.
	Source string
	// Except are sources, or scopes, that are left alone, where Source is empty.
	Except []string
	// Before is the age: what was last changed before it is deleted. See [PurgeRequest.Span]. A time in the
	// future is refused. One of the last day is not, but outside of tests it is a mistake: copies that are still on
	// their way run again.
	Before time.Time
	// Limit is how many are deleted at most. Not positive: none.
	Limit int
	// Dry deletes nothing, and only counts what there is to delete, up to Limit.
	Dry bool
}

// Validate returns an error that says what is wrong with a request that makes no sense, where now is the store's clock.
func (r PurgeRequest) Validate(now time.Time) error {
	bare := r.Kind == PurgeVersions || r.Kind == PurgeStates
	switch {
	case r.Kind != "" && !slices.Contains(PurgeKinds(), r.Kind):
		return fmt.Errorf("hookonce: purge: there is no kind %q; the kinds are %v", r.Kind, PurgeKinds())
	case r.Before.Truncate(time.Microsecond).After(now): // stores know no less
		return fmt.Errorf("hookonce: purge: %v is in the future: it would delete what was done a moment ago", r.Before)
	case bare && (r.Source != "" || len(r.Except) > 0):
		return fmt.Errorf("hookonce: purge: %s have no source", r.Kind)
	case r.Source != "" && len(r.Except) > 0:
		return fmt.Errorf("hookonce: purge: name one source, or those to leave alone, not both")
	case r.events() && strings.HasPrefix(r.Source, oncePrefix):
		return fmt.Errorf("hookonce: purge: the source %q belongs to Once: use the kind %q, and the scope as the source", r.Source, PurgeOnce)
	}
	return nil
}

func (r PurgeRequest) events() bool {
	return r.Kind == "" || r.Kind == PurgeEvents || r.Kind == PurgeFailed
}

// Over reports whether the request is about claims, or effects, in the given state.
func (r PurgeRequest) Over(state State) bool {
	if r.Kind == PurgeFailed {
		return state == StateFailed || state == StateDead
	}
	return state == StateDone
}

// Covers reports whether the request is about claims, or effects, of the given source as they are stored. It is
// where stores learn that keys of [Once] are no events.
func (r PurgeRequest) Covers(source string) bool {
	scope, once := strings.CutPrefix(source, oncePrefix)
	switch {
	case r.events() && once, r.Kind == PurgeOnce && !once:
		return false
	case r.Kind == PurgeOnce:
		source = scope
	}
	if r.Source != "" {
		return source == r.Source
	}
	return !slices.Contains(r.Except, source)
}

// Stored returns Source as it is stored with claims and effects. Empty: the request is about several.
func (r PurgeRequest) Stored() string {
	if r.Kind == PurgeOnce && r.Source != "" {
		return oncePrefix + r.Source
	}
	return r.Source
}

// earliest is when the first clocks were right that can have written anything: there was no hookonce before. Clocks
// that lost their power say 1970, 2000, or when their firmware was built.
var earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// Span returns the times of last changes that the request lets go, from the first and before the second. A time that
// no clock can have shown says nothing about an age: what was changed before 2020, or will be only after now, is
// never purged by it. `hookonce doctor` names such rows.
func (r PurgeRequest) Span() (from, to time.Time) {
	return earliest, r.Before.UTC()
}

// Purger deletes what was finished long ago. All stores are.
type Purger interface {
	// Purge deletes at most req.Limit of what the request is about, and returns how many. Call it again
	// while it returns the limit: each call is quick, and keeps nobody waiting for long. Work that is not
	// done is never deleted, but by [PurgeFailed]. Several processes may purge at once. Of a kind
	// that the store does not keep there is nothing to delete. Beside an error the number is of those that
	// are known to be deleted. Errors also: those of [PurgeRequest.Validate].
	//
	// What is deleted is not recognised any more. The time must be further back than twice the longest
	// window in which the provider sends again, or late copies run again.
	Purge(ctx context.Context, req PurgeRequest) (int, error)
}
