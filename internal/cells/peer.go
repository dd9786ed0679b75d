package cells

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/callmux"
	"github.com/hookonce/hookonce/internal/journal"
)

// The paths that cells speak to each other under: maps are exchanged as JSON, all else goes over connections that many calls
// share ([callmux]).
const (
	mapPath  = "/cells/map"
	linkPath = "/cells/link"

	// A connection is switched to the newest protocol that both sides have: by the second one an answer may have counts alone.
	linkProtocol  = "hookonce-cells/2"
	briefProtocol = "hookonce-cells/3"
	fieldFrom     = "Hookonce-Cell-From"
)

// Bounds of what cells tell each other, in bytes.
const (
	maxTold   = 4 << 20
	maxHanded = 4 << 20 // of an answer
)

// tidings are maps that are told.
type tidings struct {
	Cell string   `json:"cell"`
	Maps []string `json:"maps"`
}

// question asks which keys are on record.
type question struct {
	Cell   string   `json:"cell"`
	To     string   `json:"to"` // who is asked
	Map    string   `json:"map"`
	Source string   `json:"source"`
	Keys   []string `json:"keys"`
}

// reply says what is on record of the keys.
type reply struct {
	Known map[string]journal.Known `json:"known"`
}

// exchange tells a cell of the maps here, and learns of its own.
func (c *Cells) exchange(ctx context.Context, p Cell) error {
	var theirs tidings
	if err := c.post(ctx, p, mapPath, tidings{c.opt.Self, c.state.Load().chain.contents()}, &theirs); err != nil {
		return err
	}
	if err := c.learn(ctx, p.Name, &theirs); err != nil && !errors.Is(err, ErrMaps) {
		return err
	}
	s := c.state.Load()
	chain, err := chainOf(theirs.Maps)
	if err != nil || chain.ID() != s.chain.ID() || s.chain.Newest() == nil {
		return err
	}
	if err := c.ping(ctx, s, p); err != nil {
		return err
	}
	return c.confirm(ctx, p.Name, s.chain.Newest().Number)
}

// ping asks a cell for nothing, by the way that requests go: it is up if that is.
func (c *Cells) ping(ctx context.Context, s *state, p Cell) error {
	_, err := c.call(ctx, p, "", said(callKnown, question{Cell: c.opt.Self, To: p.Name, Map: s.chain.ID()}))
	if errors.Is(err, ErrMaps) {
		return nil // which the next exchange sees to
	}
	return err
}

// learn takes over newer maps of another cell. [ErrMaps] says that it has other maps than were here before.
func (c *Cells) learn(ctx context.Context, cell string, theirs *tidings) error {
	if theirs.Cell != "" && theirs.Cell != cell {
		return fmt.Errorf("%w: %s is asked for at the address of %s; correct the URLs in cells", ErrAway, cell, theirs.Cell)
	}
	chain, err := chainOf(theirs.Maps)
	if err != nil {
		return err
	}
	ours := c.state.Load().chain
	if chain.ID() == ours.ID() {
		return nil
	}
	newer, err := ours.follow(chain, c.opt.Now())
	if err != nil {
		c.metrics.conflicts.Inc()
		return err
	}
	if len(newer) > 0 {
		if err := c.raise(ctx, newer, chain.maps[0].Cells); err != nil {
			return err
		}
	}
	return ErrMaps
}

// behind is what to do about another cell with other maps: learn, or tell it. The result is ErrMaps where both have the
// same by now.
func (c *Cells) behind(ctx context.Context, p Cell, theirs *tidings) error {
	if err := c.learn(ctx, p.Name, theirs); err != nil && !errors.Is(err, ErrMaps) {
		return err
	}
	if err := c.exchange(ctx, p); err != nil {
		return err
	}
	return ErrMaps
}

// askCell asks a cell which keys are on record there.
func (c *Cells) askCell(ctx context.Context, s *state, cell, source string, keys []string) (map[string]journal.Known, error) {
	p, ok := s.peer(cell)
	if !ok {
		return nil, fmt.Errorf("%w: no map says where %s is", ErrAway, cell)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var r reply
	answer, err := c.call(ctx, p, source, said(callKnown, question{c.opt.Self, cell, s.chain.ID(), source, keys}))
	if err == nil {
		err = json.Unmarshal(answer, &r)
	}
	var other *otherMaps
	if errors.As(err, &other) {
		err = c.behind(ctx, p, &other.theirs)
	}
	c.metrics.askedOf(cell, err)
	if err != nil && !errors.Is(err, ErrMaps) && !errors.Is(err, ErrAway) {
		err = fmt.Errorf("%w: %w", ErrAway, err)
	}
	return r.Known, err
}

// post sends JSON and reads some.
func (c *Cells) post(ctx context.Context, p Cell, path string, say, hear any) error {
	data, err := json.Marshal(say)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+path, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header["Idempotency-Key"] = nil // it does no harm to say it again on another connection
	answer, err := c.client.Do(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxTold))
	switch {
	case err != nil:
	case answer.StatusCode != http.StatusOK:
		err = fmt.Errorf("%s answers %s", p.URL, answer.Status)
	default:
		err = json.Unmarshal(body, hear)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return nil
}

// Forward hands a request to the cell that accepts a part of its events, and returns its answer once they are durable there.
// Errors: [ErrMaps], after which the events are to be placed again, [ErrAway] and [RefusedError].
func (c *Cells) Forward(ctx context.Context, p *Placement, part *Part, r Request) (*Answer, error) {
	began := time.Now()
	a, err := c.forward(ctx, p, part, &r)
	c.metrics.forwarded(part.Cell, part.Events(), time.Since(began), err)
	return a, err
}

func (c *Cells) forward(ctx context.Context, p *Placement, part *Part, r *Request) (*Answer, error) {
	to, ok := c.state.Load().peer(part.Cell)
	if !ok {
		return nil, fmt.Errorf("%w: no map says where %s is", ErrAway, part.Cell)
	}
	head := heads.Get().(*[]byte)
	*head = handed((*head)[:0], &Hop{From: c.opt.Self, To: part.Cell, Known: part.Known, Map: p.chain, Part: part.id()}, r)
	answer, err := c.call(ctx, to, r.Source, *head, r.Body)
	if len(*head)+len(r.Body) <= callmux.MaxShared { // or it may still be on its way
		heads.Put(head)
	}
	if err == nil {
		return readAnswer(answer)
	}
	var other *otherMaps
	if errors.As(err, &other) {
		return nil, c.behind(ctx, to, &other.theirs)
	}
	return nil, err
}

// heads are used again for what is handed to other cells.
var heads = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

// Counts writes numbers for [Answer.Counts].
func Counts(n ...int) string {
	text := make([]byte, 0, 64)
	for i, v := range n {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(v), 10)
	}
	return string(text)
}

// ReadCounts reads so many numbers, or says that there are others.
func ReadCounts(text string, into ...*int) error {
	rest, more := text, true
	for i, n := range into {
		var number string
		number, rest, more = strings.Cut(rest, ",")
		v, err := strconv.Atoi(number)
		if err != nil || v < 0 || more != (i < len(into)-1) {
			return fmt.Errorf("%w: it counts %.100q", ErrRefused, text)
		}
		*n += v
	}
	return nil
}
