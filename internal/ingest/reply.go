package ingest

import (
	"context"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// reply answers the sender of one event with what the event's destination answered, now or when the first
// copy came. Which of the two it was says the verdict, as with any source.
//
// An event without a destination, and one whose answer is not kept any more, is acknowledged like those
// of other sources: it is done. A copy of one that waits for a destination which the source had before is not:
// nobody has it.
func (e *endpoint) reply(ctx context.Context, entry *journal.Event, r journal.Result, start time.Time) (answer, error) {
	if len(entry.Destinations) == 0 {
		return e.acknowledge(single(r.Status, entry.Key)), nil
	}
	room, ok := e.shares.queue(1, entry.Size())
	if !ok {
		return answer{}, errFull // it is stored all the same, and a copy gets the answer
	}
	defer room.leave()
	left := e.source.Deadline - e.now().Sub(start)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
	defer cancel()
	standing, err := e.answers.Await(ctx, journal.DeliveryID{EventID: r.ID, Destination: entry.Destinations[0]})
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("%w: %w", errUnanswered, err)
	case standing.Response != nil && relayable(standing.Response.Status):
		return relayed(standing.Response, r.Status), nil
	case undelivered(r) && standing.State == journal.Done && standing.Response == nil:
		return answer{}, fmt.Errorf("%w: it waits for another destination", errUnanswered)
	case standing.State == journal.Done && standing.Response == nil:
		return e.acknowledge(single(r.Status, entry.Key)), nil
	}
	return answer{}, fmt.Errorf("%w: the delivery is %s", errUnanswered, standing.State)
}

// undelivered reports whether an event was stored before and is not done. If nothing is open at the destination
// that the source has now, it waits for one that the source had then.
func undelivered(r journal.Result) bool {
	return (r.Status == journal.Duplicate || r.Status == journal.Conflict) && !r.Done
}

// relayable reports whether an answer is passed on. One that asks to come again does so in the sender's own
// way.
func relayable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return 200 <= status && status <= 499
}

// relayed is the answer of a destination in the form of ours.
func relayed(a *journal.Response, s journal.Status) answer {
	h := fieldLines(a.Header)
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // or the server would guess one
	}
	return answer{status: a.Status, header: h, verdict: verdicts[s], body: a.Body}
}

// fieldLines reads header fields that were stored as lines.
func fieldLines(lines []byte) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(string(lines), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			h.Add(textproto.TrimString(name), textproto.TrimString(value))
		}
	}
	return h
}
