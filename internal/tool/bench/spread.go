//go:build linux

package main

import (
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
