//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// runner has the databases and what was measured so far.
type runner struct {
	options
	dir     string
	cluster *pgtest.Cluster   // nil if no row needs it
	stores  map[string]string // by row
	samples map[string][]sample
	again   []string   // which rows failed, in which round, and why
	tries   int        // of the row that is measured, which failed before
	running []*process // of it
}

// sample is what one round measured of one row.
type sample struct {
	Rate      float64       `json:"per_second"`
	P50       time.Duration `json:"p50_ns,omitempty"`
	P99       time.Duration `json:"p99_ns,omitempty"`
	HalfRate  float64       `json:"half_load_per_second,omitempty"`
	HalfP50   time.Duration `json:"half_load_p50_ns,omitempty"`
	HalfP99   time.Duration `json:"half_load_p99_ns,omitempty"`
	Generator time.Duration `json:"generator_cpu_ns,omitempty"` // for each request
	Server    time.Duration `json:"server_cpu_ns"`              // for each request; without the database's server
	Idle      int64         `json:"idle_rss_bytes,omitempty"`
	Loaded    int64         `json:"loaded_rss_bytes,omitempty"`
	Start     time.Duration `json:"start_ns,omitempty"` // of the process, on the database of the rounds before
}

func openRunner(s options, chosen []row) (*runner, error) {
	dir, err := os.MkdirTemp(s.dir, "hookonce-bench-")
	if err != nil {
		return nil, err
	}
	rn := &runner{options: s, dir: dir, stores: map[string]string{}, samples: map[string][]sample{}}
	for _, r := range chosen {
		if rn.stores[r.id], err = rn.database(r); err != nil {
			return nil, errors.Join(err, rn.Close())
		}
	}
	return rn, nil
}

// database gives the row an empty database that it keeps over all rounds.
func (rn *runner) database(r row) (string, error) {
	switch r.store {
	case "sqlite":
		store := "sqlite:" + filepath.Join(rn.dir, r.id+".db")
		return store, rn.seed(r, store)
	case "postgres":
		if err := rn.startPostgres(); err != nil {
			return "", err
		}
		dsn, err := rn.cluster.CreateDatabase()
		if err != nil {
			return "", err
		}
		return dsn, rn.seed(r, dsn)
	}
	return "", nil
}

// startPostgres starts a server with the settings that a production server has at the least.
func (rn *runner) startPostgres() (err error) {
	if rn.cluster != nil {
		return nil
	}
	settings := []string{
		"shared_buffers = 512MB", "max_wal_size = 4GB", "min_wal_size = 2GB", "wal_compression = off", "autovacuum_naptime = 1min",
	}
	if rn.size > 0 {
		settings = append(settings, "max_wal_size = 24GB", "checkpoint_timeout = 1h")
	}
	rn.cluster, err = pgtest.Open(pgtest.Options{Fsync: true, Settings: settings})
	if err != nil {
		return err
	}
	dsn, err := rn.cluster.CreateDatabase()
	if err != nil {
		return err
	}
	return warm(context.Background(), dsn)
}

// warm writes log until the server has files to use again. A server that has been up for a while
// recycles them; a new one makes each of them, 16 MB of zeros with a sync, and commits wait for that.
func warm(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `SELECT count(pg_logical_emit_message(false, 'warm', repeat('x', 1 << 20))) FROM generate_series(1, 1800)`)
	if err == nil {
		_, err = conn.Exec(ctx, `CHECKPOINT`)
	}
	return err
}

// Close stops the server and removes the databases.
func (rn *runner) Close() error {
	var err error
	if rn.cluster != nil {
		err = rn.cluster.Close()
	}
	return errors.Join(err, os.RemoveAll(rn.dir))
}

// measure runs one row once, and once more if it fails: a benchmark of minutes is not to be lost to one bad moment. What
// failed is on record, and stands in the report.
func (rn *runner) measure(ctx context.Context, r row, round int) error {
	var s sample
	var err error
	for rn.tries = range 2 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s, err = rn.once(ctx, r, round); err == nil {
			break
		}
		fmt.Fprintf(os.Stderr, "round %d  %-2s failed: %v\n", round+1, r.id, err)
		rn.again = append(rn.again, fmt.Sprintf("row %s, round %d: %v", r.id, round+1, err))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "round %d  %-2s %8.0f/s  p99 %v\n", round+1, r.id, s.Rate, s.P99.Round(10*time.Microsecond))
	rn.samples[r.id] = append(rn.samples[r.id], s)
	if r.large {
		return nil // a checkpoint is what they are to be measured without
	}
	return rn.settle(ctx, r)
}

// once runs a row. None of its processes outlives it.
func (rn *runner) once(ctx context.Context, r row, round int) (sample, error) {
	defer func() {
		for _, p := range rn.running {
			p.kill()
		}
		rn.running = nil
	}()
	switch r.load {
	case noRequests:
		return rn.baseline(r, round)
	case endToEnd, manyDestinations:
		return rn.delivered(ctx, r, round)
	}
	return rn.served(r, round)
}

// start starts a process of the row that is measured.
func (rn *runner) start(part string, arg any) (*process, error) {
	p, err := startProcess(part, arg)
	if err == nil {
		rn.running = append(rn.running, p)
	}
	return p, err
}

// settle does what a row has left to be done later: dirty pages to write, new rows to vacuum. Otherwise some
// other row would pay for it, and wait for the disk behind what the fastest baseline has written.
func (rn *runner) settle(ctx context.Context, r row) error {
	if r.store == "postgres" {
		conn, err := pgx.Connect(ctx, rn.stores[r.id])
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		if err := settleTables(ctx, conn); err != nil {
			return err
		}
	}
	unix.Sync()
	return nil
}

func (rn *runner) baseline(r row, round int) (sample, error) {
	var res baselineResult
	cpu, err := playPart(r.kind, baselineOrder{Store: rn.stores[r.id], Warmup: rn.warmup, Duration: rn.duration, Seed: rn.seedOf(round, 0)}, &res)
	if err != nil {
		return sample{}, err
	}
	return sample{Rate: float64(res.Events) / res.Seconds, Server: cpu / time.Duration(max(res.Total, 1))}, nil
}

// seedOf gives every load of a row ids of its own; nearby seeds belong to one load.
func seedOf(round, load int) uint64 { return uint64(round)<<16 | uint64(load)<<8 }

// seedOf gives every load of the row that is measured ids of its own, also when it is tried again.
func (rn *runner) seedOf(round, load int) uint64 { return seedOf(round+rn.tries*rn.rounds, load) }

// order is the load at full speed.
func (rn *runner) order(url string, round int) loadOrder {
	return loadOrder{
		URL: url, Conns: rn.conns, Warmup: rn.warmup, Duration: rn.duration, Seed: rn.seedOf(round, 0),
		Events: int(70_000 * (rn.warmup + rn.duration).Seconds()), // more than the ceiling answers here
	}
}

// rest is how long a server is left alone before its idle memory is read.
const rest = 300 * time.Millisecond

// served measures how many requests a server answers, and how fast at half of that.
func (rn *runner) served(r row, round int) (s sample, err error) {
	p, err := rn.start(r.kind, serverOrder{Store: rn.stores[r.id], Keep: r.keep})
	if err != nil {
		return s, err
	}
	s.Start = p.started
	if r.ours {
		time.Sleep(rest)
		if s.Idle, _, err = p.memory(); err != nil {
			return s, err
		}
	}
	if round == 0 && r.large {
		if err := rn.touch(p.address); err != nil {
			return s, err
		}
	}
	order := rn.order(p.address, round)
	order.Rate = float64(r.rate)
	if r.load == storm1000 {
		order.Seed, order.Events, order.Cycle = 0, 1000, true
	}
	total, err := rn.load(&s, order)
	if err != nil {
		return s, err
	}
	if r.half {
		n, err := rn.loadHalf(&s, order)
		if err != nil {
			return s, err
		}
		total += n
	}
	return s, rn.end(p, &s, total)
}

// touch brings a server to the middle of a checkpoint's cycle, with a minute and a half of load. The first
// change of a page after a checkpoint writes all of it to the log; where keys are random and many, that is
// every event's, until most pages of their index were changed once.
func (rn *runner) touch(url string) error {
	const loads, each = 18, 5 * time.Second
	for i := range loads {
		o := rn.order(url, 0)
		o.Seed = rn.seedOf(0, 2+i)
		o.Duration, o.Events = each, int(30_000*each.Seconds()) // more than any store accepts here
		if _, err := generate(o); err != nil {
			return err
		}
	}
	return nil
}

// load runs the generator at full speed.
func (rn *runner) load(s *sample, o loadOrder) (total uint64, err error) {
	res, err := generate(o)
	if err != nil {
		return 0, err
	}
	s.Rate, s.P50, s.P99, s.Generator = res.rate(), res.Latency.P50, res.Latency.P99, res.cost()
	return res.Total, nil
}

// loadHalf runs the generator at half of the rate that was reached.
func (rn *runner) loadHalf(s *sample, o loadOrder) (total uint64, err error) {
	o.Rate = s.Rate / 2
	o.Seed |= seedOf(0, 1)
	res, err := generate(o)
	if err != nil {
		return 0, err
	}
	s.HalfRate, s.HalfP50, s.HalfP99 = res.rate(), res.Latency.P50, res.Latency.P99
	return res.Total, nil
}

// generate runs the generator. An answer other than 200 makes the figures worthless.
func generate(o loadOrder) (loadResult, error) {
	var res loadResult
	if _, err := playPart("load", o, &res); err != nil {
		return res, err
	}
	if res.Statuses[200] != res.Total {
		return res, fmt.Errorf("answers by status: %v", res.Statuses)
	}
	if o.Cycle {
		return res, nil
	}
	if n := res.Verdicts["duplicate"]; n > 0 {
		return res, fmt.Errorf("%d new events passed for duplicates", n)
	}
	return res, nil
}

// end reads the memory, stops the server, and reads its processor time.
func (rn *runner) end(p *process, s *sample, total uint64) (err error) {
	if _, s.Loaded, err = p.memory(); err != nil {
		return err
	}
	cpu, err := p.end()
	if err != nil {
		return err
	}
	s.Server = cpu / time.Duration(max(total, 1))
	return nil
}

// delivered measures from the first request until the last event is at the sink, of many destinations at those that
// are counted.
func (rn *runner) delivered(ctx context.Context, r row, round int) (s sample, err error) {
	sink, err := rn.start("sink", nil)
	if err != nil {
		return s, err
	}
	o := serverOrder{Store: rn.stores[r.id], Sink: sink.address}
	var aside *process
	if r.load == manyDestinations {
		if aside, err = rn.start(map[bool]string{true: "hang", false: "sink"}[r.hanging > 0], nil); err != nil {
			return s, err
		}
		o.Idle = aside.address
	}
	p, err := rn.start(r.kind, o)
	if err != nil {
		return s, err
	}
	s.Start = p.started
	order := rn.order(p.address, round)
	if aside != nil {
		order.URL, order.Sources = p.address+"00", many
	}
	res, err := generate(order)
	if err != nil {
		return s, err
	}
	want := int64(res.Total)
	if aside != nil {
		want = want*(many-idle)/many - many // the last round through the destinations may be cut short
	}
	last, err := drained(ctx, sink.address, want)
	if err != nil {
		return s, err
	}
	s.Rate = float64(want) / last.Sub(res.Began).Seconds()
	s.P50, s.P99, s.Generator = res.Latency.P50, res.Latency.P99, res.cost()
	if aside != nil {
		_, err = aside.end()
	}
	_, sunk := sink.end()
	return s, errors.Join(err, sunk, rn.end(p, &s, res.Total))
}

// drained waits until the sink has seen that many deliveries.
func drained(ctx context.Context, address string, want int64) (time.Time, error) {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		n, err := counted(address)
		now := time.Now()
		switch {
		case err != nil:
			return now, err
		case n >= want:
			return now, nil
		case now.After(deadline):
			return now, fmt.Errorf("%d of %d events were delivered in time", n, want)
		case ctx.Err() != nil:
			return now, context.Cause(ctx)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
