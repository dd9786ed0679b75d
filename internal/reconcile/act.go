package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/hookonce/hookonce"
)

// maxReasons is how many reasons of failures a report tells apart.
const maxReasons = 50

// acts reports whether something is to be done about what is missing.
func (r *run) acts() bool { return r.opts.Redeliver || r.opts.Ingest != nil }

// act does what was asked for about a missing event, as long as nothing stopped that: what fails is told in the report, and ends
// the acting where all others would fail as well.
func (r *run) act(ctx context.Context, p *pending) {
	r.stopped = cmp.Or(r.stopped, ctx.Err())
	decided := p.missing.Outcome != "" // it is held, or was asked for before, whatever stops the rest
	if !r.acts() || r.stopped != nil && !decided {
		return
	}
	switch {
	case decided:
	case r.opts.Redeliver:
		r.stopped = r.redeliver(ctx, p)
	default:
		r.stopped = r.store(ctx, p)
	}
	r.done++
	r.count(&p.missing)
	r.progress()
}

// count adds an outcome to the report.
func (r *run) count(m *Missing) {
	switch m.Outcome {
	case Redelivered:
		r.report.Redelivered++
	case Stored:
		r.report.Stored++
	case Arrived:
		r.report.Arrived++
	case Elsewhere:
		r.report.Elsewhere++
	case Held:
		r.report.Held++
	case Failed:
		r.report.Failed++
		if r.report.Failures == nil {
			r.report.Failures = map[string]int{}
		}
		why := m.Why
		if _, known := r.report.Failures[why]; !known && len(r.report.Failures) >= maxReasons {
			why = "other reasons"
		}
		r.report.Failures[why]++
	}
}

// fail tells in the report why an action failed, and returns the error where no other action can succeed.
func (m *Missing) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() // it was not come to, or nobody knows
	}
	m.Outcome, m.Why = Failed, err.Error()
	if later, _ := errors.AsType[*AnswerError](err); errors.Is(err, ErrRights) || later != nil && later.After > maxWait {
		return err
	}
	return nil
}

// redeliver has the sender send the event's entry again: each entry at most once a run, however many events it has.
func (r *run) redeliver(ctx context.Context, p *pending) error {
	m := &p.missing
	if m.Key != "" && r.opts.GivenUp != nil && r.opts.GivenUp(*m) {
		m.Outcome, m.Why = Failed, whyGivenUp
		return nil
	}
	if p.again == "" {
		return m.fail(ctx, errors.New("the sender does not send this entry again"))
	}
	err, asked := r.again[p.again]
	if !asked {
		err = r.client.redeliver(ctx, p.again)
		r.again[p.again] = err
	}
	if err != nil {
		return m.fail(ctx, err)
	}
	m.Outcome = Redelivered
	return nil
}

// whyGivenUp is why nobody is asked any more.
const whyGivenUp = "the sender was asked to send it again for so long, and it never came"

// redeliver asks for one entry to be sent again.
func (c *client) redeliver(ctx context.Context, id string) error {
	again := c.spec.Redeliver
	values := with(c.with, "id", id)
	a, err := c.do(ctx, ask{
		doing:  "having an event sent again",
		method: again.Method,
		url:    c.path(again.Path, values),
		body:   c.body(again.Body, values),
		rights: again.Rights,
		pace:   &c.again,
		once:   true,
	})
	switch {
	case err != nil:
		return err
	case len(again.Success) > 0 && !slices.Contains(again.Success, a.status):
		return &AnswerError{Doing: "having an event sent again", Status: a.status, Advice: fmt.Sprintf("success is %d here", again.Success)}
	}
	return nil
}

// store hands the event over to be stored.
func (r *run) store(ctx context.Context, p *pending) error {
	event, err := r.whole(ctx, p)
	if err != nil {
		return p.missing.fail(ctx, err)
	}
	stored, err := r.opts.Ingest(ctx, event)
	switch {
	case errors.Is(err, ErrElsewhere):
		p.missing.Outcome, p.missing.Why = Elsewhere, err.Error()
	case err != nil:
		return p.missing.fail(ctx, fmt.Errorf("storing it: %w", err))
	case stored:
		p.missing.Outcome = Stored
	default:
		p.missing.Outcome = Arrived
	}
	p.event = hookonce.Event{}
	return nil
}

// whole returns the event with its body: from the list, or from its detail.
func (r *run) whole(ctx context.Context, p *pending) (hookonce.Event, error) {
	detail := r.client.spec.Detail
	if detail == nil {
		if !p.whole {
			return hookonce.Event{}, errors.New("the list does not have the whole body")
		}
		return p.event, nil
	}
	if p.missing.Entry == "" {
		return hookonce.Event{}, errors.New("the entry has no id, so its details cannot be asked for")
	}
	a, err := r.client.do(ctx, ask{
		doing:  "asking for the details of an event",
		method: http.MethodGet,
		url:    r.client.path(detail.Path, with(r.client.with, "id", p.missing.Entry)),
		rights: r.client.spec.Rights,
		pace:   &r.lister.pace,
	})
	if err != nil {
		return hookonce.Event{}, err
	}
	doc, err := parseJSON(a.body)
	if err != nil {
		return hookonce.Event{}, err
	}
	events, whole := r.client.events(&detail.Event, doc)
	for _, event := range events {
		if event.Key == p.missing.Key {
			if !whole {
				return hookonce.Event{}, errors.New("the sender has not recorded the whole body")
			}
			return event, nil
		}
	}
	return hookonce.Event{}, lies("the details of an entry are those of another event")
}
