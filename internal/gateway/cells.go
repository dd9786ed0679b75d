package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/connlimit"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/overview"
)

// cellPlan is the cell that a gateway belongs to. There is none without a name.
type cellPlan struct {
	name, listen string
	configured   cells.Configured
	client       *tls.Config
	server       *tls.Config
	peers        *outgoing.Transport
	remembered   map[string]time.Duration // by source
	maxBody      int64                    // of a request of any source
}

// planCells turns what is configured of cells into a plan. Sources and destinations are planned.
func (p *plan) planCells() {
	cfg := p.cfg
	if cfg.Cell == "" {
		return
	}
	c := &p.cell
	c.name, c.listen, c.remembered = cfg.Cell, cfg.CellListen, map[string]time.Duration{}
	c.configured.Number = int64(cfg.CellsMap)
	for _, cell := range cfg.Cells {
		c.configured.Cells = append(c.configured.Cells, cells.Cell{Name: cell.Name, URL: cell.URL, Weight: uint32(cell.Weight)})
	}
	for i := range p.ingest.Sources {
		s := &p.ingest.Sources[i]
		c.configured.Sources = append(c.configured.Sources, s.Name)
		c.maxBody = max(c.maxBody, s.MaxBody)
		if p.byScope(s) {
			c.configured.ByScope = append(c.configured.ByScope, s.Name)
		}
	}
	for i := range cfg.Sources {
		c.remembered[cfg.Sources[i].Name] = cfg.RetentionOf(&cfg.Sources[i]).IDs
	}
	client := cfg.CellTLS.Config()
	if client == nil {
		client = new(tls.Config) // the secrets were left unread
	}
	c.client, c.server = client, client.Clone()
	c.over((&net.Dialer{KeepAlive: 15 * time.Second}).DialContext)
	c.server.ClientCAs, c.server.ClientAuth = client.RootCAs, tls.RequireAndVerifyClientCert
}

// cellDialTimeout is how long a connection to another cell may take.
const cellDialTimeout = 3 * time.Second

// over has connections to other cells made by dial, if that is not nil.
func (c *cellPlan) over(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	if c.client == nil || dial == nil {
		return
	}
	c.peers = outgoing.NewTransport(func() *http.Transport {
		return &http.Transport{
			TLSClientConfig: c.client.Clone(), MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 5 * time.Second,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, cellDialTimeout)
				defer cancel()
				return dial(ctx, network, address)
			},
		}
	})
}

// byScope reports whether events of a source that are about the same have to be in one cell.
func (p *plan) byScope(s *ingest.Source) bool {
	if len(s.DropLogicalDuplicates) > 0 && !s.Sync {
		return true
	}
	return slices.ContainsFunc(s.Routes, func(r ingest.Route) bool {
		return slices.ContainsFunc(r.To, func(name string) bool {
			d := p.journal.Destinations[name]
			return d.Ordered || d.Stale
		})
	})
}

// What a listener takes, another cell takes of this one: see [cells.MaxFields].
const _ = uint(cells.MaxFields - maxHeaderLines)

// maxCellConnections is how many connections other cells may have: their certificates are signed by ours.
const maxCellConnections = 1024

// celled is the cell that a gateway belongs to. Nothing if there is none.
type celled struct {
	*cells.Cells
	listener *listener
	cancel   context.CancelFunc
	done     chan struct{}
}

// listenCells binds the address for other cells.
func (g *Gateway) listenCells(p *plan) (err error) {
	if p.cell.name == "" {
		return nil
	}
	limits := defaultLimits(connlimit.Limits{Max: maxCellConnections, PerAddress: maxCellConnections}, spareAdmin)
	g.cells.listener, err = g.opt.listen("cell_listen", p.cell.listen, p.cell.server, limits, g.connections)
	return err
}

// errNoCells says that a store has no cells.
var errNoCells = errors.New("cells need a store on Postgres")

// openCells reads the maps of the store, and introduces that of the configuration. It returns nil
// if there are no cells.
func (g *Gateway) openCells(ctx context.Context, p *plan, s *journalStore) (*cells.Cells, error) {
	if p.cell.name == "" {
		return nil, s.withoutCells(ctx)
	}
	known := func(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
		return g.journal.Known(ctx, source, keys) // which begins when it is known whose the store is
	}
	o, err := p.cellOptions(s, known, g.opt)
	if err != nil {
		return nil, err
	}
	o.Remembered = func(source string) time.Duration { return g.wired.Load().cell.remembered[source] }
	o.Peers, o.Peer = cellPeers{g}, g.cells.peer
	own, err := cells.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("cells: %w", err)
	}
	return own, nil
}

// withoutCells refuses a store that is a cell's to whoever knows of none.
func (s *journalStore) withoutCells(ctx context.Context) error {
	if keeper, ok := s.Store.(journal.CellKeeper); ok {
		return cells.CheckName(ctx, keeper, "")
	}
	return nil
}

// writable returns why the store takes nothing from this gateway. It may have become a cell since that was started, and a cell that
// knows no map does not know what is its own.
func (g *Gateway) writable(ctx context.Context) error {
	err := g.journal.Ping(ctx)
	switch {
	case err != nil:
		return err
	case g.cells.Cells == nil:
		return g.store.withoutCells(ctx)
	case g.cells.number() == 0:
		return cells.ErrNoMap
	}
	return nil
}

// cellOptions are those of the cell of a store.
func (p *plan) cellOptions(s *journalStore, known cells.Known, o Options) (cells.Options, error) {
	keeper, ok := s.Store.(journal.CellKeeper)
	if !ok {
		return cells.Options{}, errNoCells
	}
	return cells.Options{
		Self: p.cell.name, Store: keeper, Known: known, Configured: p.cell.configured, Peers: p.cell.peers, Now: o.Now, Logger: cmp.Or(o.strange, o.Logger), MaxBody: p.cell.maxBody,
		Remembered: func(source string) time.Duration { return p.cell.remembered[source] },
	}, nil
}

// cellPeers carries requests to other cells, with the certificates of the moment.
type cellPeers struct{ g *Gateway }

func (c cellPeers) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.g.wired.Load().cell.peers.RoundTrip(r)
}

// serveCells begins to answer other cells, and to speak to them.
func (g *Gateway) serveCells() {
	if g.cells.Cells == nil {
		return
	}
	cells := g.cells.Handler(g.handler.Handed)
	g.serve(g.cells.listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connlimit.Trust(r.Context()) // by its certificate: no stranger takes the place of a connection that cells share
		cells.ServeHTTP(w, r)
	}))
	ctx, cancel := context.WithCancel(context.Background())
	g.cells.cancel, g.cells.done = cancel, make(chan struct{})
	go func() {
		defer close(g.cells.done)
		g.cells.Run(ctx)
	}()
}

// stand says how the other cells stand.
func (c *celled) stand() (all []overview.CellState) {
	if c.Cells == nil {
		return nil
	}
	return standing(c.Status())
}

// standing says how the other cells stand, by what is known of them.
func standing(status cells.Status) (all []overview.CellState) {
	for _, p := range status.Peers {
		asked := slices.ContainsFunc(status.Asked, func(a cells.Asked) bool { return a.Cell == p.Name })
		s := overview.CellState{Name: p.Name, Idle: status.Map.Number > 0 && p.Share == 0 && !asked}
		if p.Reached != nil {
			s.Error = p.Reached.Error()
		}
		all = append(all, s)
	}
	return all
}

// configure introduces the map of another configuration, before that is used.
func (c *celled) configure(ctx context.Context, next *plan) error {
	if c.Cells == nil {
		return nil
	}
	return c.Configure(ctx, next.cell.configured)
}

// number is that of the newest map; 0 if there is none.
func (c *celled) number() int64 {
	if c.Cells == nil {
		return 0
	}
	return c.Status().Map.Number
}

// reload shows other certificates from the next connection on. The next wiring is in use already, by which connections are made.
func (c *celled) reload(before, next *plan) {
	if c.Cells == nil {
		return
	}
	c.listener.certificates.Store(next.cell.server)
	c.Fit(next.cell.maxBody)
	c.Renew()
	before.cell.peers.CloseIdleConnections()
}

// peer says whose certificate a request of another cell came with, and returns what says whether the certificates of the moment
// trust that still. What was verified is verified again when the CA is another one, and when it ends.
func (c *celled) peer(r *http.Request) (name string, trusted func() bool) {
	conn, ok := connlimit.Under(r.Context()).(*tls.Conn)
	if !ok || len(conn.ConnectionState().PeerCertificates) == 0 {
		return "", func() bool { return false }
	}
	shown := conn.ConnectionState().PeerCertificates
	between := x509.NewCertPool()
	for _, cert := range shown[1:] {
		between.AddCert(cert)
	}
	var by *x509.CertPool
	var until time.Time
	return shown[0].Subject.String() + " " + strings.Join(shown[0].DNSNames, " "), func() bool {
		roots := c.listener.certificates.Load().ClientCAs
		if roots == by && time.Now().Before(until) {
			return true
		}
		chains, err := shown[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			return false
		}
		by, until = roots, chains[0][0].NotAfter
		for _, cert := range chains[0] {
			if cert.NotAfter.Before(until) {
				until = cert.NotAfter
			}
		}
		return true
	}
}

// end takes nothing from other cells any more, and waits for what they have handed on.
func (c *celled) end(ctx context.Context) error {
	if c.Cells == nil {
		return c.listener.close(ctx)
	}
	return errors.Join(c.listener.close(ctx), c.Stop(ctx)) // in this order: whoever is told to leave would come back
}

// hangUp ends the connections to other cells, when nothing is handed to them any more.
func (c *celled) hangUp() {
	if c.Cells != nil {
		c.Close()
	}
}

// stop ends what is said to other cells without being asked.
func (c *celled) stop() {
	if c.cancel != nil {
		c.cancel()
		<-c.done
	}
}

// known is what is on record of keys, in any cell.
func (g *Gateway) known(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
	if g.cells.Cells == nil {
		return g.journal.Known(ctx, source, keys)
	}
	return g.cells.KnownAnywhere(ctx, source, keys)
}

// CellAddr returns the address that other cells speak to, nil if there are none.
func (g *Gateway) CellAddr() net.Addr {
	if g.cells.listener == nil {
		return nil
	}
	return g.cells.listener.Addr()
}
