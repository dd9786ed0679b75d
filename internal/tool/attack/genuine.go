//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// The secrets of the sources. All are obviously made up.
const (
	shopSecret  = "whsec_YS1mYWtlLXNlY3JldC1vZi10aGUtc2hvcA=="
	batchSecret = "a-fake-secret-of-batches"
)

// giveUp is after what time a genuine sender, like most, hangs up.
const giveUp = 5 * time.Second

// clients are those of somebody who asks by turns on a connection that is kept and on a new one.
type clients struct{ kept, fresh *http.Client }

func newClients() clients {
	client := func(fresh bool) *http.Client {
		return &http.Client{Timeout: giveUp, Transport: &http.Transport{DisableKeepAlives: fresh, MaxIdleConnsPerHost: 64}}
	}
	return clients{kept: client(false), fresh: client(true)}
}

func (c clients) of(n int) *http.Client {
	if n%2 == 0 {
		return c.kept
	}
	return c.fresh
}

// do sends a request and returns the status, with its body read.
func (c clients) do(n int, req *http.Request) (status int, body string, err error) {
	res, err := c.of(n).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// heldUp is how late a request may be sent before the machine is at fault, which does not let the sender run.
const heldUp = 100 * time.Millisecond

// steady asks so often per second until ctx ends, waits for what is under way, and tells what came of it. Time counts
// from the moment at which a request was due.
func steady(ctx context.Context, rate int, ask func(n int) (status int, err error)) seen {
	var s seen
	var mu sync.Mutex
	var asked sync.WaitGroup
	began := time.Now()
	for n := 0; ; n++ {
		due := began.Add(time.Duration(n) * time.Second / time.Duration(rate))
		select {
		case <-ctx.Done():
			asked.Wait()
			s.Latency = s.latency.Quantiles()
			return s
		case <-time.After(time.Until(due)):
		}
		if time.Since(due) > heldUp {
			mu.Lock()
			s.HeldUp++
			mu.Unlock()
		}
		asked.Go(func() {
			status, err := ask(n)
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			s.add(status, err, took)
		})
	}
}

// add counts one request.
func (s *seen) add(status int, err error, took time.Duration) {
	s.Sent++
	s.latency.Record(took)
	if err == nil && status/100 == 2 && took <= inTime {
		s.InTime++
		return
	}
	how := outcome(status, err)
	if err == nil && status/100 == 2 {
		how = "late"
	}
	if s.Others == nil {
		s.Others = map[string]int{}
	}
	s.Others[how]++
}

// outcome names how a request ended.
func outcome(status int, err error) string {
	switch {
	case err == nil:
		return fmt.Sprint(status)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op + " failed"
	}
	return "failed"
}

// genuine is a sender with secrets and credentials. It remembers what was acknowledged.
type genuine struct {
	clients
	url  string // of the gateway's listener
	shop *spec.Provider

	mu           sync.Mutex
	acknowledged map[string]bool
}

func newGenuine(listen string) *genuine {
	return &genuine{
		clients: newClients(), url: "http://" + listen, shop: provider.Standard(shopSecret), acknowledged: map[string]bool{},
	}
}

// acknowledge notes the keys of what was answered 2xx.
func (g *genuine) acknowledge(status int, err error, keys ...string) (int, error) {
	if err == nil && status/100 == 2 {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, key := range keys {
			g.acknowledged[key] = true
		}
	}
	return status, err
}

// event posts the n-th event to the shop.
func (g *genuine) event(n int) (int, error) {
	key := fmt.Sprintf("event-%d", n)
	req, err := g.signed(key, eventBody(key))
	if err != nil {
		return 0, err
	}
	status, _, err := g.do(n, req)
	return g.acknowledge(status, err, key)
}

// eventBody is what an event of the shop looks like.
func eventBody(key string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"type":"invoice.paid","data":{"note":%q}}`, key, bytes.Repeat([]byte("n"), 600))
}

// signed returns a request of the shop's provider.
func (g *genuine) signed(key string, body []byte) (*http.Request, error) {
	signed := &hookonce.Request{Method: http.MethodPost, Body: body, Now: time.Now(), Header: http.Header{
		"Content-Type": {"application/json"}, "Webhook-Id": {key},
	}}
	if err := g.shop.Sign(signed); err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, g.url+"/in/shop", bytes.NewReader(signed.Body))
	if err != nil {
		return nil, err
	}
	req.Header = signed.Header
	return req, nil
}

// call charges somebody under the n-th key.
func (g *genuine) call(n int) (int, error) {
	key := fmt.Sprintf("call-%d", n)
	req, err := http.NewRequest(http.MethodPost, g.url+"/in/charges/slow", bytes.NewReader([]byte(`{"cents":4200}`)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", goodToken)
	req.Header.Set("Idempotency-Key", `"`+key+`"`)
	status, _, err := g.do(n, req)
	return g.acknowledge(status, err, key)
}

// outstanding returns how many acknowledged events or calls the app has not seen, and how many twice.
func (g *genuine) outstanding(a *app) (lost, doubled int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key := range g.acknowledged {
		switch n := a.times(key); {
		case n == 0:
			lost++
		case n > 1:
			doubled++
		}
	}
	return lost, doubled
}
