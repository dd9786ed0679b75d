package year

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/tally"
)

// cellNames are those of the cells of a plan, in their order.
var cellNames = []string{"eu", "us", "ap"}

// site is a store with the gateways on it: a cell, or all that there is.
type site struct {
	name  string // of the cell; empty: there are no cells
	store book
	skew  atomic.Int64 // of the database's clock, in nanoseconds
	hub   hub
	gone  atomic.Bool // the cell is lost
	given atomic.Bool // and was given up
}

// cellAddress is where the gateways of a cell are spoken to by others: a name that stands for all of them.
func cellAddress(cell string) string { return cell + ".internal:8444" }

func cellListens(number int) string { return fmt.Sprintf("10.0.0.%d:8444", number+1) }

// addresses returns those that a name stands for, another one first each time.
func (w *world) addresses(address string) (all []string) {
	for _, m := range w.machines {
		if m.site.name != "" && cellAddress(m.site.name) == address {
			all = append(all, cellListens(m.number))
		}
	}
	if len(all) == 0 {
		return []string{address}
	}
	first := int(w.asked.Add(1)) % len(all)
	return append(all[first:len(all):len(all)], all[:first]...)
}

// dial connects a process to whoever listens at an address, or at one of those that it stands for.
func (p *process) dial(ctx context.Context, _, address string) (conn net.Conn, err error) {
	for _, one := range p.addresses(address) {
		if p.isDead() {
			return nil, errDead
		}
		if conn, err = p.network.dial(ctx, p.name, p.identity(), one); err == nil || ctx.Err() != nil {
			break
		}
	}
	return conn, err
}

// reading is what the ledger reads of stores: of all that are not lost.
type reading []*site

func (r reading) each(do func(book)) {
	for _, s := range r {
		if !s.gone.Load() {
			do(s.store)
		}
	}
}

// Deliveries returns those that are open.
func (r reading) Deliveries() (all []journaltest.Delivery) {
	r.each(func(b book) { all = append(all, b.Deliveries()...) })
	return all
}

// Lookup returns the event that has a key.
func (r reading) Lookup(source, key string) (id int64, ok bool) {
	r.each(func(b book) {
		if !ok {
			id, ok = b.Lookup(source, key)
		}
	})
	return id, ok
}

// Stored returns what was counted of events that were stored.
func (r reading) Stored() (all []tally.Point) {
	r.each(func(b book) { all = append(all, b.Stored()...) })
	return all
}

// cellDisk is the disk of a process whose store is a cell.
type cellDisk struct {
	*disk
	keeper journal.CellKeeper
}

// CellRecord implements [journal.CellKeeper].
func (d *cellDisk) CellRecord(ctx context.Context) (journal.CellRecord, error) {
	return call(ctx, d.disk, "maps", d.keeper.CellRecord)
}

// CellName implements [journal.CellKeeper].
func (d *cellDisk) CellName(ctx context.Context) (string, error) {
	return call(ctx, d.disk, "name", d.keeper.CellName)
}

// RaiseCellMap implements [journal.CellKeeper].
func (d *cellDisk) RaiseCellMap(ctx context.Context, r journal.CellRaise) error {
	return do(ctx, d.disk, "raise", func(ctx context.Context) error {
		defer d.p.booking()()
		err := d.keeper.RaiseCellMap(ctx, r)
		if err == nil {
			d.p.raised(d.p.identity(), d.p.site.name, newest(d.keeper))
		}
		return err
	})
}

// ConfirmCell implements [journal.CellKeeper].
func (d *cellDisk) ConfirmCell(ctx context.Context, c journal.CellConfirmation) error {
	return do(ctx, d.disk, "confirm", func(ctx context.Context) error { return d.keeper.ConfirmCell(ctx, c) })
}

// newest is the number of the newest map of a store.
func newest(k journal.CellKeeper) int64 {
	r, err := k.CellRecord(context.Background())
	if err != nil {
		panic(fmt.Sprintf("the maps cannot be read: %v", err))
	}
	if len(r.Maps) == 0 {
		return 0
	}
	return r.Maps[len(r.Maps)-1].Number
}

// atlas are the maps that operators write into files, the first one first. Whoever is given one has its number here.
type atlas struct {
	mu    sync.Mutex
	all   []drawn
	busy  chan struct{} // of whoever introduces one, or gives a cell up
	loses sync.WaitGroup
}

// drawn is a map as it stands in a file.
type drawn struct {
	number  int64
	weights map[string]int // of the cells that are left
}

// at returns a version, or the newest.
func (a *atlas) at(version int) drawn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if version < 0 {
		version = len(a.all) - 1
	}
	return a.all[version]
}

// add adds a version and returns which one it is.
func (a *atlas) add(d drawn) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, d)
	return len(a.all) - 1
}

// last is the newest version.
func (a *atlas) last() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all) - 1
}

// numbered returns the map of a number, as a route sees it.
func (a *atlas) numbered(number int64) (cells []hookonce.Cell) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.all {
		if d.number == number {
			cells = append(cells, d.cells()...)
		}
	}
	return cells
}

// cells are those of the map, as a route sees them.
func (d drawn) cells() (all []hookonce.Cell) {
	for name, weight := range d.weights {
		all = append(all, hookonce.Cell{Name: name, Weight: uint32(weight)})
	}
	return all
}

// cellText is what the file of a gateway says of cells. Empty: nothing.
func (m *machine) cellText() string {
	if m.site.name == "" {
		return ""
	}
	var b strings.Builder
	d := m.draft
	if d == nil {
		told := m.atlas.at(int(m.told.Load()))
		d = &told
	}
	fmt.Fprintf(&b, "cell: %s\ncells_map: %d\ncell_listen: %s\ncell_tls: {cert: cell.pem, key: cell-key.pem, ca: cells-ca.pem}\ncells:\n", m.site.name, d.number, cellListens(m.number))
	for _, name := range cellNames {
		if weight, is := d.weights[name]; is {
			fmt.Fprintf(&b, "  - {name: %s, url: 'https://%s', weight: %d}\n", name, cellAddress(name), weight)
		}
	}
	return b.String()
}

// file reads one that a configuration names.
func file(name string) ([]byte, error) {
	data, ok := certificates()[name]
	if !ok {
		return nil, fmt.Errorf("there is no file %s", name)
	}
	return data, nil
}

// certificates are a CA, and a certificate that all cells share. They outlive every plan.
var certificates = sync.OnceValue(func() map[string][]byte {
	sign := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		if signer == nil {
			signer = key
		}
		template.NotBefore, template.NotAfter = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			panic(err)
		}
		return der, key
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cells of a simulation"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER, caKey := sign(ca, ca, nil)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	for _, name := range cellNames {
		leaf.DNSNames = append(leaf.DNSNames, name+".internal")
	}
	der, key := sign(leaf, ca, caKey)
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		panic(err)
	}
	text := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return map[string][]byte{"cells-ca.pem": text("CERTIFICATE", caDER), "cell.pem": text("CERTIFICATE", der), "cell-key.pem": text("EC PRIVATE KEY", keyDER)}
})

// newestAnywhere is the number of the newest map that a cell has that is not lost, and a cell that has it.
func (w *world) newestAnywhere() (number int64, at *site) {
	for _, s := range w.sites {
		if n := newest(s.keeper()); !s.gone.Load() && (at == nil || n > number) {
			number, at = n, s
		}
	}
	return number, at
}

func (s *site) keeper() journal.CellKeeper { return s.store.(memoryBook).Memory }

// introduce has operators write another map into files, and gateways read them: of all, or of one, from which the others hear of
// it. A map that no cell has yet is not followed by another one: two of one number are what operators must not make.
func (w *world) introduce(at *machine, all bool, weights map[string]int) {
	w.atlas.busy <- struct{}{}
	defer func() { <-w.atlas.busy }()
	number, newest := w.newestAnywhere()
	if last := w.atlas.at(-1).number; last > number {
		w.log("operator", fmt.Sprintf("map %d is on its way, and no other one is begun", last))
		return
	}
	next, err := w.planned(newest, weights)
	if err != nil {
		w.log("operator", "no map is planned: "+err.Error())
		return
	}
	w.write(next, func(m *machine) bool { return all || m == at })
}

// planned has operators ask, as hookonce cells plan does beside the gateways of a cell, what follows from a file with other
// weights. The map is what they are told.
func (w *world) planned(at *site, weights map[string]int) (next drawn, err error) {
	draft := w.atlas.at(-1) // whose number the file still has
	draft.weights = weights
	b, err := w.beside(at, &draft)
	if err != nil {
		return next, err
	}
	defer b.Close()
	p, err := b.Plan()
	if err != nil {
		return next, err
	}
	w.count("map/planned")
	next = drawn{p.To.Number, map[string]int{}}
	for _, c := range p.To.Cells {
		next.weights[c.Name] = int(c.Weight)
	}
	w.plannedMoves(p, next.cells())
	return next, nil
}

// write writes a map into files, which gateways read.
func (w *world) write(d drawn, these func(*machine) bool) {
	w.log("operator", fmt.Sprintf("map %d: %v", d.number, d.weights))
	version := w.atlas.add(d)
	w.fired("map/raise")
	for _, m := range w.machines {
		if these(m) && !m.site.gone.Load() {
			m.told.Store(int64(version))
			w.operate(m.number, "/reload", nil)
		}
	}
}

// weightsOf are weights as a plan has them, two bits for each cell; of those that were not given up.
func (w *world) weightsOf(code int) map[string]int {
	weights, sum := map[string]int{}, 0
	for i, s := range w.sites {
		if !s.given.Load() {
			weights[s.name] = code >> (2 * i) & 3
			sum += weights[s.name]
		}
	}
	for _, s := range w.sites {
		if sum == 0 && !s.gone.Load() {
			weights[s.name], sum = 1, 1
		}
	}
	return weights
}

// lose loses a cell for good, unless it is the last one. Its gateways die at once, and after a while operators give it up.
func (w *world) lose(s *site, after time.Duration) {
	left := 0
	for _, o := range w.sites {
		if !o.gone.Load() && o != s {
			left++
		}
	}
	if s.name == "" || left == 0 || s.gone.Swap(true) {
		return
	}
	w.ledger.lost(s.name)
	for _, m := range w.machines {
		if m.site == s {
			m.want(false, true)
			m.kill("with its cell", 0)
		}
	}
	since := time.Now()
	w.atlas.loses.Go(func() {
		for time.Sleep(after); ; time.Sleep(2 * time.Second) {
			err := w.giveUp(s, since)
			if err == nil {
				return
			}
			w.log("operator", "the cell "+s.name+" is not given up: "+err.Error())
		}
	})
}

// giveUp gives a cell up, as hookonce cells forget does, at a cell that has the newest map.
func (w *world) giveUp(s *site, since time.Time) error {
	w.atlas.busy <- struct{}{}
	defer func() { <-w.atlas.busy }()
	number, at := w.newestAnywhere()
	last := w.atlas.at(-1)
	everybody := func(*machine) bool { return true }
	if last.number > number { // whoever was to introduce it may have been lost
		w.write(last, everybody)
		return fmt.Errorf("map %d is on its way", last.number)
	}
	weights, sum := map[string]int{}, 0
	for name, weight := range last.weights {
		if name != s.name {
			weights[name], sum = weight, sum+weight
		}
	}
	if sum == 0 {
		next, err := w.planned(at, w.weightsOf(0))
		if err != nil {
			return err
		}
		w.write(next, everybody)
		return errors.New("nobody would own anything")
	}
	if number == last.number { // or it was, and nobody heard that it was done
		if err := w.forget(s, at, since); err != nil {
			return err
		}
		number++
	}
	version := w.atlas.add(drawn{number, weights})
	s.given.Store(true)
	w.fired("map/forget")
	for _, m := range w.machines {
		m.told.Store(int64(version))
	}
	return nil
}

// forget says it at a cell. Copies of what the lost one had are new from now on.
func (w *world) forget(s, at *site, since time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	b, err := w.beside(at, nil)
	if err != nil {
		return err
	}
	defer b.Close()
	w.forgets(s.name)
	_, err = b.ForgetCell(ctx, s.name, since, "operator", "simulated", time.Now())
	return err
}

// beside opens a cell as the commands do that operators run beside its gateways, with the newest file, or with one that nobody
// else has.
func (w *world) beside(at *site, draft *drawn) (*gateway.CellsBeside, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	o := w.operatorAt(at, draft)
	cfg, err := o.load()
	if err != nil {
		return nil, err
	}
	return gateway.OpenCells(ctx, cfg, gateway.Options{Store: o.openStore, Dial: o.dial})
}

// operatorAt is a command that an operator runs beside the gateways of a cell.
func (w *world) operatorAt(s *site, draft *drawn) *process {
	for _, m := range w.machines {
		if m.site == s {
			beside := &machine{world: w, name: "operator", number: m.number, site: s, draft: draft}
			beside.told.Store(int64(w.atlas.last()))
			return &process{machine: beside, dead: make(chan struct{}), asked: make(chan struct{})}
		}
	}
	panic("a cell without gateways")
}
