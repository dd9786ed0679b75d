package ingest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce/internal/body"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/refusals"
)

// acceptPlaced has the events of a request accepted by the cells that they belong to. Where maps change meanwhile it begins
// again with what is not on record here: the rest is found where it was stored.
func (e *endpoint) acceptPlaced(in *arrival) (a answer, err error) {
	left := in.within(e.patience()) - e.now().Sub(in.now)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(in.Context()), left)
	defer cancel()
	for range cells.MaxTries {
		a, err = e.acceptIn(ctx, in)
		switch {
		case err == nil || ctx.Err() != nil:
			return a, err
		case errors.Is(err, journal.ErrCellMap):
			if err := e.cells.Refresh(ctx); err != nil {
				return a, fmt.Errorf("%w: %w", journal.ErrUnavailable, err)
			}
		case !errors.Is(err, cells.ErrMaps) || in.hop != nil && (in.hop.Known || !e.cells.Has(ctx, in.hop)): // who has to ask again
			return a, err
		}
	}
	return a, err
}

// patience is how long a request may take whose events another cell accepts.
func (e *endpoint) patience() time.Duration { return max(e.intake.acceptTimeout, e.source.Deadline) }

// within is how long a request may take that may take so long where it came: what another cell waits for has to be answered
// before that one gives it up.
func (in *arrival) within(own time.Duration) time.Duration {
	if in.hop == nil || in.hop.Left <= 0 {
		return own
	}
	return min(own, in.hop.Left-min(in.hop.Left/10, 250*time.Millisecond))
}

// acceptIn has the events accepted where they belong by the maps of this moment.
func (e *endpoint) acceptIn(ctx context.Context, in *arrival) (answer, error) {
	p, err := e.cells.Place(ctx, e.source.Name, in.delivery, in.hop, in.settled)
	if err != nil {
		return answer{}, err
	}
	others := p.Elsewhere()
	switch {
	case p.Away() != nil:
		return e.acceptDivided(ctx, in, p)
	case len(others) == 0:
		return e.acceptHere(in, p.Select(in.delivery), p)
	case len(others) == 1 && p.Here() == 0 && in.settled == nil:
		a, counts, err := e.hand(ctx, in, p, others[0])
		if err != nil {
			return answer{}, err
		}
		return e.passed(in, a, counts), nil
	}
	return e.acceptDivided(ctx, in, p)
}

// acceptDivided has several cells accept each a part of a request, and answers when all have. After an error the sender
// comes again, and what was accepted is a duplicate then: a cell that is away holds up its own events alone. The own part,
// which has the events without a key, comes last: if another part failed these are not stored, and the sender's next try does
// not store them again.
func (e *endpoint) acceptDivided(ctx context.Context, in *arrival, p *cells.Placement) (answer, error) {
	parts := p.Elsewhere()
	counts := make([]statusCounts, len(parts))
	var group errgroup.Group // one that fails ends no other
	for i, part := range parts {
		group.Go(func() (err error) {
			_, counts[i], err = e.hand(ctx, in, p, part)
			counts[i].without(part.Settled()) // which stand in in.before
			return err
		})
	}
	failed := cmp.Or(group.Wait(), p.Away())
	if failed != nil {
		p = p.Keyed()
	}
	if p.Here() > 0 {
		if _, err := e.acceptHere(in, p.Select(in.delivery), p); failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return answer{}, failed
	}
	sum := in.before
	for _, c := range counts {
		sum.join(c)
	}
	return e.acknowledge(ordinary(in, sum)), nil
}

// hand hands a request to the cell that accepts a part of it, which has to say of each of its events what became of it.
func (e *endpoint) hand(ctx context.Context, in *arrival, p *cells.Placement, part *cells.Part) (*cells.Answer, statusCounts, error) {
	r := in.Request
	a, err := e.cells.Forward(ctx, p, part, cells.Request{
		Source: e.source.Name, Method: r.Method, TLS: r.TLS != nil, Host: r.Host, Target: r.URL.RequestURI(), Address: e.allowlist.from(r), Header: r.Header, Body: in.raw,
	})
	if err != nil {
		return nil, statusCounts{}, err
	}
	counts, err := accounted(a, part.Events())
	return a, counts, err
}

// accounted reads what an answer counts, and refuses one that does not say of so many events what became of them: it must not be
// passed on as an acknowledgement.
func accounted(a *cells.Answer, events int) (counts statusCounts, err error) {
	if err := counts.read(a.Counts); err != nil {
		return counts, err
	}
	if n := counts.sum(); n != events {
		return counts, fmt.Errorf("%w: %d events were handed on, and the answer counts %d", cells.ErrDisagree, events, n)
	}
	return counts, nil
}

// passed is the answer of another cell to a request in the form of ours. One of counts alone is the one that they make here.
func (e *endpoint) passed(in *arrival, a *cells.Answer, counts statusCounts) answer {
	if a.Status == 0 {
		return e.acknowledge(ordinary(in, counts))
	}
	own := answer{status: a.Status, header: a.Header, body: a.Body}
	if _, ok := own.header["Content-Type"]; !ok {
		own.header["Content-Type"] = nil // or the server would guess one
	}
	own.counts = counts // for the cell that has handed it on to this one
	return own
}

// ordinary is the answer to a request that says no more than what became of its events. Another cell that makes it of the counts by
// itself is told these alone.
func ordinary(in *arrival, counts statusCounts) (a answer) {
	switch {
	case in.hop != nil && in.hop.Brief:
		a = answer{status: http.StatusOK, statusField: statusFields[counts.status()], brief: true}
	case in.delivery.Len() == 1:
		a = single(counts.status(), first(in.delivery).Key)
	default:
		a = counts.batch()
	}
	a.counts = counts
	return a
}

// text and read carry counts to another cell.
func (t *statusCounts) text() string {
	return cells.Counts(t.accepted, t.duplicates, t.conflicts, t.unkeyed, t.unprotected)
}

func (t *statusCounts) read(text string) error {
	return cells.ReadCounts(text, &t.accepted, &t.duplicates, &t.conflicts, &t.unkeyed, &t.unprotected)
}

// sum is how many events are counted.
func (t *statusCounts) sum() int {
	return t.accepted + t.duplicates + t.conflicts + t.unkeyed + t.unprotected
}

// join adds other counts.
func (t *statusCounts) join(o statusCounts) {
	t.accepted += o.accepted
	t.duplicates += o.duplicates
	t.conflicts += o.conflicts
	t.unkeyed += o.unkeyed
	t.unprotected += o.unprotected
}

// Handed answers what another cell hands on, whose word is that of a cell.
func (h *Handler) Handed(ctx context.Context, hop *cells.Hop, in *cells.Request) cells.Outcome {
	r, err := sent(ctx, in)
	doors := h.doors.Load()
	e, ok := doors.endpoints[in.Source]
	switch {
	case err != nil:
		return cells.Outcome{Refused: err.Error()}
	case !ok:
		return cells.Outcome{Refused: doors.unknown.note(r, glimpse{}, errUnknownSource).Reason}
	case e.cells == nil:
		return cells.Outcome{Refused: e.note(r, glimpse{}, errUnspecified).Reason}
	}
	return e.answerHop(r, in.Body, hop)
}

// answerHop answers another cell.
func (e *endpoint) answerHop(r *http.Request, raw []byte, hop *cells.Hop) cells.Outcome {
	start := e.now()
	e.metrics.receivedAt(start)
	var seen glimpse
	a, err := e.takeHop(r, raw, hop, start, &seen)
	e.metrics.seconds.Observe(e.now().Sub(start).Seconds())
	switch {
	case err == nil && a.brief:
		return cells.Outcome{Answer: &cells.Answer{Counts: a.counts.text()}}
	case err == nil:
		h := make(http.Header, 4)
		a.fill(h)
		return cells.Outcome{Answer: &cells.Answer{Status: a.status, Header: h, Body: a.body, Counts: a.counts.text()}}
	case errors.Is(err, cells.ErrMaps):
		return cells.Outcome{Maps: true}
	}
	return cells.Outcome{Refused: e.note(r, seen, err).Reason}
}

// takeHop takes a request that another cell hands on: it is verified again, and those of its events are accepted that
// belong here.
func (e *endpoint) takeHop(r *http.Request, raw []byte, hop *cells.Hop, now time.Time, seen *glimpse) (a answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	trace := e.trace.Request(r, now)
	if int64(len(raw)) > e.source.MaxBody {
		err = body.ErrTooLarge
	} else {
		a, err = e.take(r, raw, nil, trace, now, hop)
	}
	if err != nil {
		seen.key, seen.body = e.unverifiedKey(r, raw), refusals.BodyOf(raw)
	}
	trace.End(a.status, e.now())
	return a, err
}

// sent is a request as its sender sent it, without its body.
func sent(ctx context.Context, in *cells.Request) (*http.Request, error) {
	at, err := url.ParseRequestURI(in.Target)
	if err != nil { // which has the target, and that may have a secret
		return nil, fmt.Errorf("%w: the target of the request cannot be read", errUnspecified)
	}
	r := (&http.Request{
		Method: in.Method, URL: at, Host: in.Host, Body: http.NoBody, RemoteAddr: in.Address,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: in.Header,
	}).WithContext(ctx)
	if in.TLS {
		r.TLS = overTLS
	}
	return r, nil
}

// overTLS is all that is known of the connection of a request that came over TLS to another cell. It is not changed.
var overTLS = &tls.ConnectionState{HandshakeComplete: true}
