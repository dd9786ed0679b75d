package year

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// extended books leases that a store has extended: none under a token that is not the last one.
func (l *ledger) extended(who string, held []journal.Held, extended []bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, h := range held {
		own, is := l.holders[journal.DeliveryID{EventID: h.EventID, Destination: h.Destination}]
		if extended[i] && is && own.token != h.Token {
			l.breaksLocked("a lease that was lost is not extended", "%s extends the lease of %d at %s under token %d, and %s has it under %d",
				who, h.EventID, h.Destination, h.Token, own.who, own.token)
		}
	}
}

// scarce takes the descriptors of a machine, for a while: it makes no connection.
func (l *ledger) scarce(machine string, last time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.short[machine] = [2]time.Time{time.Now(), time.Now().Add(last)}
}

// plenty gives all machines theirs back.
func (l *ledger) plenty() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for machine, s := range l.short {
		if time.Now().Before(s[1]) {
			s[1] = time.Now()
			l.short[machine] = s
		}
	}
}

func (l *ledger) isScarce(machine string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.short[machine][1])
}

// ours checks that an attempt which failed was one: where a machine had no descriptors all the time, and nothing arrived,
// the destination had no part in it.
func (l *ledger) ours(who string, rec *record, o journal.Outcome) {
	machine, _, _ := strings.Cut(who, "/")
	short, now := l.short[machine], time.Now()
	began := now.Add(-o.Duration - time.Second) // outcomes are recorded at once
	if o.Status != 0 || o.Spared || began.Before(short[0]) || now.After(short[1]) {
		return
	}
	if l.skewed || l.disturbed(now, 2*time.Minute, 0, "disk/", "wire/", "network/part", "application/dies", "application/commit-dies") {
		return
	}
	f := l.events[base(rec.event)]
	if !slices.ContainsFunc(f.attempts[o.Destination], func(a attempt) bool { return !a.at.Before(began) }) {
		l.breaksLocked("a fault of ours costs no try", "%s records %s at %s as %s, and never had a connection: %s", who, rec.event, o.Destination, o.State, o.Error)
	}
}

// large books that a request is sent which is stored in several commits, if it goes to a gateway.
func (l *ledger) large() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.larges = append(l.larges, time.Now())
}

// crowded reports whether large requests may have waited for each other for as long as a gateway gives them.
func (l *ledger) crowded(at time.Time) bool {
	n := 0
	for _, t := range l.larges {
		if at.Sub(t).Abs() < 2*hungUpFor {
			n++
		}
	}
	return n > 1
}

// hungUp checks, some time after the sender of an event hung up, that it is stored all the same.
func (l *ledger) hungUp(f *fact, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts["hung-up"]++
	if f.stored > 0 || l.keyed(f) != nil || l.skewed || l.disturbed(at, 2*time.Minute, time.Since(at), "disk/", "process/", "wire/", "network/", "night") {
		return
	}
	if f.More > 0 && l.crowded(at) {
		return
	}
	l.breaksLocked("a hang-up cancels nothing", "%s is not stored %v after its sender hung up, and nothing was disturbed", f.called, time.Since(at))
}

// refused checks what a sender is answered that is not acknowledged: that the fault is ours, and when to come again. Where clocks
// are wrong, what it signed may be refused.
func (l *ledger) refused(f *fact, name string, got reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if got.status != http.StatusServiceUnavailable {
		if f.Direct || !l.skewed {
			l.breaksLocked("when we are at fault, 503", "%s was answered %d", name, got.status)
		}
		return
	}
	l.counts["senders/told when to come again"]++
	if seconds, err := strconv.Atoi(got.retryAfter); err != nil || seconds < 1 {
		l.breaksLocked("when we are at fault, 503", "%s was answered %d with the Retry-After %q", name, got.status, got.retryAfter)
	}
}

// ackedDirectly checks what an application acknowledged that senders come to themselves: each request without a key has an
// effect of its own.
func (l *ledger) ackedDirectly(f *fact, name string, status int) {
	least := 1
	if !f.Keyed {
		least = len(f.acked)
	}
	if f.effects[direct] < least {
		l.breaksLocked("nothing is acknowledged before it is durable", "%s was answered %d by %s, %d times now, and its effect was committed %d times",
			name, status, direct, len(f.acked), f.effects[direct])
	}
}

// came books a request at an application that senders come to themselves.
func (l *ledger) came(at string, names []string) (f *fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logLocked(at, fmt.Sprintf("gets %v from their sender", names))
	l.counts["requests/"+at]++
	for _, name := range names {
		if f = l.events[base(name)]; f == nil {
			return nil
		}
		if !f.Keyed {
			f.came++
		}
	}
	return f
}

// ackedPast checks what was acknowledged and is on no record: each destination has taken it, past the store.
func (l *ledger) ackedPast(f *fact, name string, got reply) {
	l.counts["acked/past the store"]++
	f.past = append(f.past, time.Now())
	if f.kind() != "cart.kept" {
		l.breaksLocked("only what is open goes past the store", "%s is of type %s, and was answered %d while it is not on record", name, f.kind(), got.status)
	}
	for _, at := range destinationsOf(f.Source) {
		if !slices.ContainsFunc(f.attempts[at], attempt.took) {
			l.breaksLocked("losing is worse", "%s was answered %d (past the store: %t), is not on record, and %s has not taken it", name, got.status, got.past, at)
		}
	}
}

// recorded checks, when all is quiet, that what went past the store is on record, unless a process ended that knew of it.
func (l *ledger) recorded() {
	for name, f := range l.events {
		if len(f.past) == 0 || l.lives(f) > 0 {
			continue
		}
		if first := f.past[0]; !l.disturbed(time.Now(), time.Since(first)+time.Second, 0, "process/") {
			l.breaksLocked("what went past the store is recorded", "%s was delivered past the store at %s, and is on no record", name, stamp(first.Sub(l.begin)))
		}
	}
}

// answersKept is for how long answers are kept for certain.
const answersKept = 6 * 24 * time.Hour

// replied checks what a sender reads that waits for the answer of the application: one that this gave to this event, the same
// for all copies, and none before it is durable.
func (l *ledger) replied(f *fact, rec *record, name string, got reply) {
	l.counts["acked/with the answer"]++
	if l.lives(f) > 1 || l.disturbed(time.Now(), time.Since(rec.at)+time.Second, 0, "operator/") {
		return // forgotten, or replayed: asked again
	}
	switch {
	case got.answer == "" && time.Since(rec.at) < answersKept-maxSkew:
		l.breaksLocked("one answer for all copies", "%s was answered %d without the answer of the application", name, got.status)
	case got.answer == "":
	case !slices.ContainsFunc(f.attempts[claiming], func(a attempt) bool { return a.answer == got.answer && a.took() }):
		l.breaksLocked("one answer for all copies", "%s was answered %s, which %s never gave to it", name, got.answer, claiming)
	case f.answer != "" && f.answer != got.answer:
		l.breaksLocked("one answer for all copies", "%s was answered %s, and %s before", name, got.answer, f.answer)
	default:
		f.answer = got.answer
	}
	for _, d := range l.store.Deliveries() {
		if got.answer != "" && d.EventID == rec.id {
			l.breaksLocked("nothing is acknowledged before it is durable", "%s was answered %s, and its delivery is %s", name, got.answer, d.State)
		}
	}
}
