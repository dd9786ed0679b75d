package cells

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// The paths that cells speak to each other under, and the fields of what they say. A request is handed on whole, behind
// fields of this kind: its header is a part of the body, so that nothing on the way changes it.
const (
	mapPath     = "/cells/map"
	knownPath   = "/cells/known"
	forwardPath = "/cells/in/"

	fieldFrom    = "Hookonce-Cell-From"
	fieldMap     = "Hookonce-Cell-Map"
	fieldHop     = "Hookonce-Cell-Hop"
	fieldPart    = "Hookonce-Cell-Part"
	fieldMethod  = "Hookonce-Cell-Method"
	fieldURL     = "Hookonce-Cell-Url"
	fieldAddress = "Hookonce-Cell-Address"

	fieldOutcome = "Hookonce-Cell-Outcome"
	fieldCounts  = "Hookonce-Cell-Counts"
	fieldReason  = "Hookonce-Cell-Reason"
)

// What hops are for, and how they end.
const (
	hopOwner = "owner"
	hopKnown = "known"

	outcomeAnswered = "answered"
	outcomeRefused  = "refused"
)

// Bounds of what cells tell each other, in bytes.
const (
	maxTold     = 4 << 20
	maxHead     = 64 << 10
	maxForwards = 64 << 10 // of what is read of an answer that says nothing else
)

// tidings are maps that are told.
type tidings struct {
	Cell string   `json:"cell"`
	Maps []string `json:"maps"`
}

// question asks which keys are on record.
type question struct {
	Cell   string   `json:"cell"`
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
	return c.confirm(ctx, p.Name, s.chain.Newest().Number)
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
	if ours.Newest() == nil {
		if err := c.checkJoin(ctx, chain); err != nil {
			return err
		}
	}
	newer, err := ours.follow(chain, c.opt.Now())
	if err != nil {
		c.metrics.conflicts.Inc()
		return err
	}
	if len(newer) > 0 {
		if err := c.raise(ctx, newer); err != nil {
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
	err := c.post(ctx, p, knownPath, question{c.opt.Self, s.chain.ID(), source, keys}, &r)
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

// otherMaps is the answer of a cell that has others.
type otherMaps struct{ theirs tidings }

func (*otherMaps) Error() string { return ErrMaps.Error() }

func (*otherMaps) Unwrap() error { return ErrMaps }

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
	case answer.StatusCode == http.StatusConflict:
		return otherMapsOf(body)
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

func otherMapsOf(body []byte) error {
	o := new(otherMaps)
	if err := json.Unmarshal(body, &o.theirs); err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return o
}

// Request is one that is handed to another cell as it came.
type Request struct {
	Source  string
	Method  string
	URL     string // as it was seen here
	Address string // of the sender
	Header  http.Header
	Body    []byte
}

// Answer is what another cell answered.
type Answer struct {
	Status int
	Header http.Header // without what belongs to the connection
	Body   []byte
	Counts string // of what became of the events, see Counts
}

// Forward hands a request to the cell that accepts a part of its events, and returns its answer once they are durable there.
// maxAnswer bounds the body of that in bytes. Errors: [ErrMaps], after which the events are to be placed again, [ErrAway]
// and [ErrRefused].
func (c *Cells) Forward(ctx context.Context, p *Placement, part *Part, r Request, maxAnswer int64) (*Answer, error) {
	began := time.Now()
	a, err := c.forward(ctx, p, part, &r, maxAnswer)
	c.metrics.forwarded(part.Cell, part.Events(), time.Since(began), err)
	return a, err
}

func (c *Cells) forward(ctx context.Context, p *Placement, part *Part, r *Request, maxAnswer int64) (*Answer, error) {
	to, ok := c.state.Load().peer(part.Cell)
	if !ok {
		return nil, fmt.Errorf("%w: no map says where %s is", ErrAway, part.Cell)
	}
	answer, err := c.client.Do(c.handed(ctx, to, p, part, r))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+maxForwards))
	if err != nil {
		return nil, fmt.Errorf("%w: reading its answer: %w", ErrAway, err)
	}
	switch answer.Header.Get(fieldOutcome) {
	case outcomeAnswered:
		return answered(answer, body), nil
	case outcomeRefused:
		return nil, fmt.Errorf("%w: %s: %s", ErrRefused, part.Cell, answer.Header.Get(fieldReason))
	}
	if answer.StatusCode != http.StatusConflict {
		return nil, fmt.Errorf("%w: %s answers %s", ErrAway, to.URL, answer.Status)
	}
	err = otherMapsOf(body)
	var other *otherMaps
	if errors.As(err, &other) {
		return nil, c.behind(ctx, to, &other.theirs)
	}
	return nil, err
}

// handed is the request in the form in which it goes to another cell.
func (c *Cells) handed(ctx context.Context, to Cell, p *Placement, part *Part, r *Request) *http.Request {
	var head bytes.Buffer
	_ = r.Header.Write(&head) // into memory
	head.WriteString("\r\n")
	body := func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(head.Bytes()), bytes.NewReader(r.Body))), nil
	}
	hop := hopOwner
	if part.Known {
		hop = hopKnown
	}
	out, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL+forwardPath+r.Source, http.NoBody)
	if err != nil {
		out = (&http.Request{Method: http.MethodPost, Header: http.Header{}}).WithContext(ctx) // which fails when it is sent
	}
	out.Body, _ = body()
	out.GetBody = body
	out.ContentLength = int64(head.Len()) + int64(len(r.Body))
	out.Header = http.Header{
		"Content-Type": {"application/octet-stream"}, "User-Agent": {"hookonce"}, "Idempotency-Key": nil, // a copy does no harm
		fieldFrom: {c.opt.Self}, fieldMap: {p.chain}, fieldHop: {hop}, fieldPart: {part.id()},
		fieldMethod: {r.Method}, fieldURL: {r.URL}, fieldAddress: {r.Address},
	}
	return out
}

// answered is an answer in the form in which it goes back to the sender.
func answered(r *http.Response, body []byte) *Answer {
	a := &Answer{Status: r.StatusCode, Header: r.Header.Clone(), Body: body, Counts: r.Header.Get(fieldCounts)}
	for _, name := range []string{"Connection", "Keep-Alive", "Transfer-Encoding", "Content-Length", "Date", fieldOutcome, fieldCounts} {
		a.Header.Del(name)
	}
	return a
}

// Hop is how a request came from another cell.
type Hop struct {
	From  string
	Known bool   // the keys are on record here
	Map   string // by which it was placed, see [Chain.ID]
	Part  string // which of its events are meant
	// How it came from the sender.
	Method, URL, Address string
}

// HopOf reads how a request came from another cell.
func HopOf(r *http.Request) (*Hop, error) {
	h := &Hop{
		From: r.Header.Get(fieldFrom), Map: r.Header.Get(fieldMap), Part: r.Header.Get(fieldPart), Known: r.Header.Get(fieldHop) == hopKnown,
		Method: r.Header.Get(fieldMethod), URL: r.Header.Get(fieldURL), Address: r.Header.Get(fieldAddress),
	}
	if h.From == "" || h.Map == "" || h.Part == "" || h.Method == "" || h.URL == "" || !h.Known && r.Header.Get(fieldHop) != hopOwner {
		return nil, fmt.Errorf("%w: it lacks what a cell says", ErrRefused)
	}
	return h, nil
}

// Split parts what a cell handed on into the header and the body of the request.
func Split(raw []byte) (http.Header, []byte, error) {
	if body, none := bytes.CutPrefix(raw, []byte("\r\n")); none {
		return http.Header{}, body, nil
	}
	head, _, found := bytes.Cut(raw[:min(len(raw), maxHead)], []byte("\r\n\r\n"))
	if !found {
		return nil, nil, fmt.Errorf("%w: no header is in front of the request", ErrRefused)
	}
	header := http.Header{}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, nil, fmt.Errorf("%w: a line of the header has no name", ErrRefused)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		header[name] = append(header[name], strings.TrimSpace(value))
	}
	return header, raw[len(head)+4:], nil
}

// MaxHead is how long the header of a request is at most that a cell hands on, in bytes.
const MaxHead = maxHead

// Mark writes how a hop ended into the header of its answer: with counts of what became of the events, or why it was refused.
func Mark(h http.Header, counts, refused string) {
	if refused != "" {
		h.Set(fieldOutcome, outcomeRefused)
		h.Set(fieldReason, refused)
		return
	}
	h.Set(fieldOutcome, outcomeAnswered)
	h.Set(fieldCounts, counts)
}

// Counts writes numbers for [Answer.Counts].
func Counts(n ...int) string {
	text := make([]string, len(n))
	for i, v := range n {
		text[i] = strconv.Itoa(v)
	}
	return strings.Join(text, ",")
}

// ReadCounts reads so many numbers, or says that there are others.
func ReadCounts(text string, into ...*int) error {
	parts := strings.Split(text, ",")
	if len(parts) != len(into) {
		return fmt.Errorf("%w: it counts %q", ErrRefused, text)
	}
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 {
			return fmt.Errorf("%w: it counts %q", ErrRefused, text)
		}
		*into[i] += v
	}
	return nil
}
