package pgprimary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// askTimeout is how long a server may take to say what it is.
	askTimeout = 2 * time.Second
	// others is how much longer is waited for the rest, once one server has said that it takes writes: one of them may
	// have been promoted since.
	others = 300 * time.Millisecond
	// fresh is how long a standby is left alone before it is asked again, and how long connections are made to the primary that was found without asking again.
	fresh = 200 * time.Millisecond
	// patience is how long a statement may go without an answer before the servers are asked who leads, interval the time
	// between two looks at what waits, and pause the time between two questions for its sake.
	patience, interval, pause = 500 * time.Millisecond, 250 * time.Millisecond, time.Second
)

// standing is what a server says of itself.
type standing struct {
	Writes   bool
	Timeline string // eight hexadecimal digits, of a server that takes writes
	System   string // identifies the cluster that the server belongs to
}

// finder knows the servers of a pool, which of them leads, and the connections to them.
type finder struct {
	ask     func(ctx context.Context, s server) (standing, error)
	servers []server

	look sync.Mutex // held while the servers are asked

	mu     sync.Mutex
	leader server    // as last found; no ways: never
	known  standing  // of it
	found  time.Time // when the answer came
	conns  map[*conn]bool
	watch  bool // somebody looks after the connections
}

// askSQL asks a server what it is. Whoever was promoted last is on the highest timeline. All functions are open to everybody.
const askSQL = `
	SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off',
		CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
		(SELECT system_identifier::text FROM pg_control_system())`

// hook is [pgxpool.Config.BeforeConnect]: it may set what it takes to log in, for the server that the configuration leads to.
type hook func(context.Context, *pgx.ConnConfig) error

// asker returns the function that asks a server on a connection of its own.
func asker(c *pgx.ConnConfig, before hook) func(context.Context, server) (standing, error) {
	c.ValidateConnect, c.AfterConnect = nil, nil
	c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return func(ctx context.Context, s server) (st standing, err error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		own := c.Copy()
		s.lead(own)
		if err := before(ctx, own); err != nil {
			return st, err
		}
		conn, err := pgx.ConnectConfig(ctx, own)
		if err != nil {
			return st, err
		}
		defer func() { _ = conn.Close(ctx) }()
		return st, conn.QueryRow(ctx, askSQL).Scan(&st.Writes, &st.Timeline, &st.System)
	}
}

// aim makes c lead to the primary, and calls before for that.
func (f *finder) aim(ctx context.Context, c *pgx.ConnConfig, before hook) error {
	leader, err := f.primary(ctx)
	if err != nil {
		return err
	}
	leader.lead(c)
	if err := before(ctx, c); err != nil {
		return err
	}
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return f.hold(raw, leader.name), nil
	}
	return nil
}

// primary returns the server that leads, and asks all of them unless that was done a moment ago.
func (f *finder) primary(ctx context.Context) (server, error) {
	f.look.Lock()
	defer f.look.Unlock()
	f.mu.Lock()
	leader, at := f.leader, f.found
	f.mu.Unlock()
	if len(leader.ways) > 0 && time.Since(at) < fresh {
		return leader, nil
	}
	return f.find(ctx)
}

// answer is what came of asking a server.
type answer struct {
	server
	standing
	err error
}

// find asks all servers at once, and leaves the one that led if another does.
func (f *finder) find(ctx context.Context) (server, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer)
	for _, s := range f.servers {
		go f.askAgain(ctx, s, answers)
	}
	f.mu.Lock()
	known := f.known
	f.mu.Unlock()
	best, err := f.best(ctx, answers, known)
	if err != nil {
		return server{}, err
	}
	f.follow(*best)
	return best.server, nil
}

// askAgain asks a server, and one that is a standby again and again until ctx ends: it may be promoted while another is
// waited for.
func (f *finder) askAgain(ctx context.Context, s server, answers chan<- answer) {
	for {
		st, err := f.ask(ctx, s)
		select {
		case answers <- answer{s, st, err}:
		case <-ctx.Done():
			return
		}
		if err != nil || st.Writes {
			return
		}
		select {
		case <-time.After(fresh):
		case <-ctx.Done():
			return
		}
	}
}

// best returns the answer of the server that leads, as soon as all have answered, or some time after it did.
func (f *finder) best(ctx context.Context, answers <-chan answer, known standing) (best *answer, err error) {
	refused := map[string]error{}
	var enough <-chan time.Time
	for answered := map[string]bool{}; len(answered) < len(f.servers); {
		select {
		case a := <-answers:
			answered[a.name] = true
			if refused[a.name] = f.refuse(a, known); refused[a.name] != nil {
				continue
			}
			if best == nil || later(a.standing, best.standing) {
				best = &a
			}
			if enough == nil {
				enough = time.After(others)
			}
		case <-enough:
			return best, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("looking for the primary: %w", context.Cause(ctx))
		}
	}
	if best == nil {
		return nil, fmt.Errorf("no server takes writes: %w", errors.Join(slices.Collect(maps.Values(refused))...))
	}
	return best, nil
}

// refuse says why a server is not the primary; nil if it may be.
func (f *finder) refuse(a answer, known standing) error {
	switch {
	case a.err != nil:
		return fmt.Errorf("%s: %w", a.name, a.err)
	case !a.Writes:
		return fmt.Errorf("%s is a standby, or read-only", a.name)
	case later(known, a.standing):
		return fmt.Errorf("%s takes writes on timeline %s, and this process has seen a primary on %s: a former one, unless what was written there is given up, which a restart of this process accepts", a.name, a.Timeline, known.Timeline)
	}
	return nil
}

// later reports whether a was promoted after b. Timelines of different clusters say nothing.
func later(a, b standing) bool {
	return a.System == b.System && cmp.Compare(a.Timeline, b.Timeline) > 0
}

// follow remembers who leads, and cuts connections to everybody else.
func (f *finder) follow(a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader, f.known, f.found = a.server, a.standing, time.Now()
	for c := range f.conns {
		if c.server != a.name {
			c.leave()
		}
	}
}

// hold keeps a connection under watch.
func (f *finder) hold(raw net.Conn, name string) net.Conn {
	c := &conn{Conn: raw, finder: f, server: name}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[c] = true
	if !f.watch {
		f.watch = true
		go f.attend()
	}
	return c
}

// attend asks who leads while some statement waits for its answer, until there are no connections any more.
func (f *finder) attend() {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var asked time.Time
	for range tick.C {
		waits, idle := f.waiting()
		switch {
		case idle:
			return
		case waits && time.Since(asked) >= pause && f.look.TryLock():
			_, _ = f.find(context.Background()) // who cannot be found now may be found next time
			f.look.Unlock()
			asked = time.Now()
		}
	}
}

// waiting reports whether a connection waits for an answer for long, and whether there are no connections, which ends
// the watch.
func (f *finder) waiting() (waits, idle bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.conns) == 0 {
		f.watch = false
		return false, true
	}
	for c := range f.conns {
		waits = waits || c.waits() > patience
	}
	return waits, false
}

// drop forgets a connection.
func (f *finder) drop(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}
