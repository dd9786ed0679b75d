package cells

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/problem"
)

// Taker takes a request that another cell hands on.
type Taker func(ctx context.Context, hop *Hop, r *Request) Outcome

// Handler answers other cells, which have shown that they are some: what is handed on goes to take.
func (c *Cells) Handler(take Taker) http.Handler {
	c.take = take
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+mapPath, c.serveMap)
	mux.HandleFunc("GET "+linkPath, c.serveLink)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, trusted := c.peerOf(r); !trusted() {
			http.Error(w, "the certificate of this cell is not trusted any more", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// peerOf says who asks, and returns what says whether he is trusted.
func (c *Cells) peerOf(r *http.Request) (name string, trusted func() bool) {
	if c.opt.Peer == nil {
		return r.Header.Get(fieldFrom), func() bool { return true }
	}
	return c.opt.Peer(r)
}

func (c *Cells) tell(w http.ResponseWriter, status int) {
	writeJSON(w, status, tidings{c.opt.Self, c.state.Load().chain.contents()})
}

// serveMap takes over newer maps, and tells of those that count then.
func (c *Cells) serveMap(w http.ResponseWriter, r *http.Request) {
	var theirs tidings
	if !readJSON(w, r, &theirs) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	err := c.Refresh(ctx)
	if err == nil {
		err = c.learn(ctx, theirs.Cell, &theirs)
	}
	if err != nil && !errors.Is(err, ErrMaps) && !errors.Is(err, ErrConflict) {
		c.refuse(w, err)
		return
	}
	c.tell(w, http.StatusOK)
}

// serveLink switches to a connection that calls share.
func (c *Cells) serveLink(w http.ResponseWriter, r *http.Request) {
	protocols := r.Header.Values("Upgrade")
	protocol, brief := linkProtocol, slices.Contains(protocols, briefProtocol)
	if brief {
		protocol = briefProtocol
	} else if !slices.Contains(protocols, linkProtocol) {
		http.Error(w, "this is not what cells say", http.StatusBadRequest)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		c.refuse(w, err)
		return
	}
	_ = conn.SetDeadline(time.Time{}) // those of the server are for requests
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
	if err != nil {
		_ = conn.Close()
		return
	}
	name, trusted := c.peerOf(r)
	c.server.Serve(context.WithValue(context.Background(), briefly{}, brief), conn, buffered.Reader, c.memory(name), trusted)
}

// briefly is the key under which the context of a call has whether it came by [briefProtocol].
type briefly struct{}

// serveCall answers what another cell says over such a connection, and panics never.
func (c *Cells) serveCall(ctx context.Context, left time.Duration, payload []byte) (answer []byte) {
	defer func() {
		if p := recover(); p != nil {
			c.opt.Logger.Error("cells: what another cell said made the program panic", "panic", p, "stack", string(debug.Stack()))
			answer = append([]byte{answerAway}, "it failed there"...)
		}
	}()
	switch {
	case len(payload) > 0 && payload[0] == callForward:
		hop, r, err := readHanded(payload[1:])
		if err != nil {
			return append([]byte{answerRefused}, err.Error()...)
		}
		if hop.To != c.opt.Self {
			return c.notMe(hop.To)
		}
		hop.Left = left
		hop.Brief, _ = ctx.Value(briefly{}).(bool)
		o := c.take(ctx, hop, r)
		if o.Maps {
			return c.sayMaps()
		}
		return o.text()
	case len(payload) > 0 && payload[0] == callKnown:
		return c.answerKnown(ctx, payload[1:])
	}
	return append([]byte{answerAway}, "this is not what cells say"...)
}

// notMe answers who means another cell. What is on record here would say nothing of what that one has.
func (c *Cells) notMe(meant string) []byte {
	return fmt.Appendf([]byte{answerAway}, "%.100q is asked for at the address of %s; correct the URLs in cells", meant, c.opt.Self)
}

// answerKnown says what is on record of keys, after the fence is as new as the question.
func (c *Cells) answerKnown(ctx context.Context, asked []byte) []byte {
	var q question
	if err := json.Unmarshal(asked, &q); err != nil {
		return append([]byte{answerAway}, "this is not what cells ask"...)
	}
	if q.To != c.opt.Self {
		return c.notMe(q.To)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !c.has(ctx, q.Map) {
		return c.sayMaps()
	}
	if len(q.Keys) == 0 {
		return said(answerDone, reply{})
	}
	found, err := c.opt.Known(ctx, q.Source, q.Keys)
	if err != nil {
		c.opt.Logger.Warn("cells: another cell cannot be answered", "error", err)
		return append([]byte{answerAway}, "the store does not answer"...)
	}
	if found == nil {
		found = map[string]journal.Known{}
	}
	return said(answerDone, reply{found})
}

// sayMaps answers a cell that has other maps with those that count here.
func (c *Cells) sayMaps() []byte {
	return said(answerMaps, tidings{c.opt.Self, c.state.Load().chain.contents()})
}

// has reports whether the maps here are those that a cell names, with a look into the store if they were not.
func (c *Cells) has(ctx context.Context, id string) bool {
	if c.state.Load().chain.ID() == id {
		return true
	}
	return c.Refresh(ctx) == nil && c.state.Load().chain.ID() == id
}

// refuse answers a cell that cannot be answered now.
func (c *Cells) refuse(w http.ResponseWriter, err error) {
	c.opt.Logger.Warn("cells: another cell cannot be answered", "error", err)
	problem.Unavailable.New("The store of this cell does not answer.").Write(w)
}

func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTold))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		http.Error(w, "this is not what cells say", http.StatusBadRequest)
	}
	return err == nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// Has reports whether the maps here are those that a hop was placed by, with a look into the store if they were not.
func (c *Cells) Has(ctx context.Context, hop *Hop) bool { return c.has(ctx, hop.Map) }
