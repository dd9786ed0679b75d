//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/hookonce/hookonce/internal/config"
)

// Of many destinations, some may hang. What is counted is what the others get.
const (
	many = 100
	idle = 5
)

// sourcePath is where one of many sources is posted to.
func sourcePath(n int) string { return fmt.Sprintf("/in/bench%02d", n) }

// manySources returns many sources like s, each with a destination of its own. The first of them deliver to
// a place of their own, so that the others can be counted.
func manySources(s config.Source, o serverOrder) []config.Source {
	all := make([]config.Source, many)
	for i := range all {
		all[i] = s
		all[i].Name = fmt.Sprintf("bench%02d", i)
		if all[i].To = o.Sink; i < idle {
			all[i].To = o.Idle
		}
	}
	return all
}

// serveHang is a destination that takes connections and requests, and never answers.
func serveHang() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	ready("http://" + l.Addr().String() + "/")
	return nil
}

// spread measures from the first request until the last event is at those destinations that are counted.
func (rn *runner) spread(ctx context.Context, r row, round int) (s sample, err error) {
	sink, err := startProcess("sink", nil)
	if err != nil {
		return s, err
	}
	other := map[bool]string{true: "hang", false: "sink"}[r.hanging > 0]
	aside, err := startProcess(other, nil)
	if err != nil {
		return s, err
	}
	p, err := startProcess(r.kind, serverOrder{Store: rn.stores[r.id], Sink: sink.address, Idle: aside.address})
	if err != nil {
		return s, err
	}
	s.Start = p.started
	order := rn.order(p.address+"00", round)
	order.Sources = many
	res, err := generate(order)
	if err != nil {
		return s, err
	}
	want := int64(res.Total)*(many-idle)/many - many // the last round through the destinations may be cut short
	last, err := drained(ctx, sink.address, want)
	if err != nil {
		return s, err
	}
	s.Rate = float64(want) / last.Sub(res.Began).Seconds()
	s.P50, s.P99, s.Generator = res.Latency.P50, res.Latency.P99, res.cost()
	_, sunk := sink.end()
	_, put := aside.end()
	return s, errors.Join(sunk, put, rn.end(p, &s, res.Total))
}
