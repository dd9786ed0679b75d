package cells

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/hookonce/hookonce/internal/callmux"
	"github.com/hookonce/hookonce/internal/quota"
)

// call says something to a cell over a connection that is shared, and returns what is behind the first byte of its answer.
// It is in the places of a source. Errors: [ErrAway], [RefusedError], and otherMaps.
func (c *Cells) call(ctx context.Context, to Cell, source string, say ...[]byte) ([]byte, error) {
	answer, err := c.link(to.URL).Call(ctx, source, say...)
	switch {
	case errors.Is(err, callmux.ErrCrowded), errors.Is(err, callmux.ErrBusy): // there and here
		return nil, fmt.Errorf("%w: %w", &RefusedError{to.Name, "queue_full"}, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrAway, to.Name, err)
	}
	if len(answer) == 0 {
		return nil, fmt.Errorf("%w: %s says nothing", ErrAway, to.Name)
	}
	switch kind, rest := answer[0], answer[1:]; kind {
	case answerDone:
		return rest, nil
	case answerMaps:
		return nil, otherMapsOf(rest)
	case answerRefused:
		return nil, &RefusedError{to.Name, string(rest[:min(len(rest), maxReason)])}
	default:
		return nil, fmt.Errorf("%w: %s: %.200s", ErrAway, to.Name, rest)
	}
}

// maxReason bounds in bytes what is kept of the reason that another cell gives.
const maxReason = 200

// link returns the connections to an address.
func (c *Cells) link(url string) *callmux.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.links[url] == nil {
		c.links[url] = callmux.NewClient(func(ctx context.Context) (io.ReadWriteCloser, error) { return c.dial(ctx, url) }, maxHanded)
	}
	return c.links[url]
}

// dial connects to a cell.
func (c *Cells) dial(ctx context.Context, url string) (io.ReadWriteCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+linkPath, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header["Upgrade"] = []string{linkProtocol, briefProtocol} // a cell that has the first alone reads no more than the first line
	r.Header.Set(fieldFrom, c.opt.Self)
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, err
	}
	conn, both := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !both {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return conn, nil
}

// drop ends the connections to addresses that no map has any more, and forgets the cells that are spoken to no more.
func (c *Cells) drop(s *state) {
	urls, names := map[string]bool{}, map[string]bool{}
	for _, p := range s.peers(c.opt.Self) {
		urls[p.URL], names[p.Name] = true, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.metrics.keep(names, c.reached)
	for url, l := range c.links {
		if !urls[url] {
			l.Retire()
			delete(c.links, url)
		}
	}
}

// Renew has what is said to other cells go over new connections.
func (c *Cells) Renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.links {
		l.Renew()
	}
}

// Stop takes nothing from other cells any more, and waits until what they have handed on is answered. When ctx ends first it
// is cut off, which is an error.
func (c *Cells) Stop(ctx context.Context) error { return c.server.Close(ctx) }

// Close ends the connections to other cells. It is called when nothing is handed to them any more.
func (c *Cells) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.links {
		l.Close()
	}
}

// maxShares is how many names of cells are told apart.
const maxShares = 2 * maxCells

// memory is what the requests are held in that a cell hands on, by source.
func (c *Cells) memory(from string) func(source string) callmux.Memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shares[from] == nil && len(c.shares) >= maxShares {
		from = ""
	}
	if c.shares[from] == nil {
		c.shares[from] = &share{of: c.room.Share(), parts: map[string]*part{}}
	}
	return c.shares[from].part
}

// maxParts is how many names of sources are told apart of each cell.
const maxParts = 4096

// share is what a cell has of the memory for what others hand on.
type share struct {
	of    *quota.Share
	mu    sync.Mutex
	parts map[string]*part
}

// part returns what one source has of it.
func (s *share) part(source string) callmux.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[source] == nil && len(s.parts) >= maxParts {
		source = ""
	}
	if s.parts[source] == nil {
		s.parts[source] = &part{of: s.of}
	}
	return s.parts[source]
}

// part is what one source has of a cell's share. It leaves as much to others as it then holds, besides what the cell leaves.
type part struct {
	of  *quota.Share
	own atomic.Int64
}

// Take implements [callmux.Memory].
func (p *part) Take(n int64) bool {
	already := p.own.Add(n) - n
	if !p.of.TakeBeside(n, already) {
		p.own.Add(-n)
		return false
	}
	return true
}

// Give implements [callmux.Memory].
func (p *part) Give(n int64) {
	p.own.Add(-n)
	p.of.Give(n)
}

// otherMaps is the answer of a cell that has others.
type otherMaps struct{ theirs tidings }

func (*otherMaps) Error() string { return ErrMaps.Error() }

func (*otherMaps) Unwrap() error { return ErrMaps }

func otherMapsOf(said []byte) error {
	o := new(otherMaps)
	if err := json.Unmarshal(said, &o.theirs); err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return o
}
