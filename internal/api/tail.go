package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tail"
)

const (
	tailWriteTime = 10 * time.Second // for one message to whoever reads it
	tailTime      = time.Hour        // after which whoever looks on has to show again that he may
)

// The kinds of messages of a tail, as its stream names them.
const (
	TailEvent   = string(tail.Arrived) // an [Event] came
	TailState   = string(tail.Changed) // how one stands now, that came a moment ago
	TailLeftOut = string(tail.LeftOut) // a [TailGap]
	TailAway    = string(tail.Away)    // the store does not answer
	TailBack    = string(tail.Back)    // and does again
)

// TailGap says what a tail did not tell.
type TailGap struct {
	Count  int        `json:"count,omitempty" doc:"So many events or changes, because they came faster than they were read."`
	Before *time.Time `json:"before,omitempty" doc:"All before that time: ask for them with GET /events."`
}

type tailInput struct {
	Source string    `query:"source" maxLength:"64"`
	Type   string    `query:"type" maxLength:"255" doc:"Pattern for the event's type; * stands for any characters." example:"invoice.*"`
	State  string    `query:"state" enum:"pending,processing,failed,dead,done" doc:"Only what is in that state when it is told."`
	Since  time.Time `query:"since" doc:"Begin with the events accepted since then, the newest 1000."`
	After  string    `header:"Last-Event-ID" maxLength:"2048" doc:"The last id of another tail, at any gateway on the store: go on there. Browsers send it by themselves."`
}

// tail answers with a stream that does not end by itself.
func (a *api) tail(_ context.Context, in *tailInput) (*huma.StreamResponse, error) {
	for _, t := range []struct{ name, value string }{{"source", in.Source}, {"type", in.Type}} {
		if !plain(t.value) {
			return nil, invalid("query."+t.name, "this is not readable text", nil)
		}
	}
	if err := validTime("query.since", in.Since.UTC()); err != nil {
		return nil, err
	}
	if err := a.knownSource("query.source", in.Source); err != nil {
		return nil, err
	}
	filter := tail.Filter{Source: in.Source, Type: in.Type, State: journal.State(in.State)}
	followed, err := a.opt.Tail.Follow(filter, tail.From{Since: in.Since, After: in.After})
	switch {
	case errors.Is(err, tail.ErrPosition):
		return nil, invalid("header.Last-Event-ID", "this is not the id of a tail; pass the last one as it is, or none", nil)
	case errors.Is(err, tail.ErrTooMany):
		return nil, retryLater(fmt.Sprintf("%d look on at this gateway already; ask another one, or close a tail", tail.Max))
	case err != nil:
		return nil, retryLater("the gateway is stopping; ask another one")
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer followed.Close()
		r, w := humago.Unwrap(c)
		ctx, cancel := context.WithTimeout(r.Context(), tailTime)
		defer cancel()
		stream(ctx, w, followed)
	}}, nil
}

// stream writes messages as server-sent events until the reader is gone, does not read, or the tail ends. The last message
// that arrived says where the reader goes on.
func stream(ctx context.Context, w http.ResponseWriter, t *tail.Tail) {
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // that of requests; where there is none there is nothing to lift
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would collect it
	text := ": messages follow\nretry: 1000\n\n"
	for {
		_ = out.SetWriteDeadline(time.Now().Add(tailWriteTime))
		if _, err := w.Write([]byte(text)); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		m, err := t.Next(ctx)
		if err != nil {
			return
		}
		text = sse(&m)
	}
}

// sse writes a message as a server-sent event.
func sse(m *tail.Message) string {
	text := ""
	if m.At != "" {
		text = "id: " + m.At + "\n"
	}
	var data any
	switch m.Kind {
	case tail.Arrived, tail.Changed:
		data = newEvent(&m.Event)
	case tail.LeftOut:
		gap := TailGap{Count: m.Count}
		if !m.Before.IsZero() {
			before := m.Before.UTC()
			gap.Before = &before
		}
		data = gap
	case tail.Beat:
		return ":\n" + text + "\n"
	default:
		data = struct{}{}
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		panic(err) // an answer of the API has a JSON form, in one line
	}
	return text + "event: " + string(m.Kind) + "\ndata: " + string(encoded) + "\n\n"
}

// tailOperation is an operation whose answer is a stream.
func tailOperation() huma.Operation {
	o := operation(http.MethodGet, "tail-events", "/tail", "Tell events as they come, from all gateways on the store, as server-sent events")
	o.Description = "Messages are event (an event came, told once), state (how one stands that came less than half a minute ago; may be told again after a reconnection), left_out, store_away and store_back. A reconnection with Last-Event-ID goes on where the stream ended."
	o.Responses = map[string]*huma.Response{"200": {Description: "A stream that does not end by itself", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	return o
}
