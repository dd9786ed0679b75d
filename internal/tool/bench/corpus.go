//go:build linux

package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/traffic"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// benchKey is the secret of both ends.
const benchKey = "a secret for benchmarks"

func benchSecret() string { return "whsec_" + base64.StdEncoding.EncodeToString([]byte(benchKey)) }

func benchProvider() *spec.Provider {
	return provider.Standard(benchSecret())
}

// bodySize is the size of every body in bytes.
const bodySize = 2048

// payload returns an invoice of bodySize bytes.
func payload() []byte {
	var b strings.Builder
	b.WriteString(`{"type":"invoice.paid","timestamp":"2026-11-01T10:00:00Z","data":{"id":"inv_1001","customer":"cus_81","currency":"EUR","lines":[`)
	for i := 0; b.Len() < bodySize-160; i++ {
		fmt.Fprintf(&b, `{"sku":"HOOK-%04d","description":"Hook number %d, brass, polished","quantity":%d,"unit_amount":%d},`, i*37%9973, i, 1+i%5, 100+i*i%7919)
	}
	b.WriteString(`{"sku":"END"}],"note":"`)
	const end = `"}}`
	b.WriteString(strings.Repeat("n", bodySize-len(end)-b.Len()))
	return []byte(b.String() + end)
}

// corpus makes signed requests that differ in their id and signature only. Signatures are made ahead
// of the run; a request then is a copy of 64 bytes into the connection's own buffer.
type corpus struct {
	template   []byte
	id, sig    int // where they stand in the template
	path       int // where the number of the source stands
	sources    int // how many there are; 0: one without a number
	seed       uint64
	signatures [][sha256.Size]byte
	mac        hash.Hash
	middle     []byte // between the id and the body, as it is signed
	body       []byte
	cycle      bool // start again after the last instead of signing more
	next       int
}

// newCorpus signs ahead for n events, which go to so many sources in turn.
func newCorpus(t *traffic.Target, seed uint64, n int, cycle bool, sources int) (*corpus, error) {
	c := &corpus{seed: seed, sources: sources, mac: hmac.New(sha256.New, []byte(benchKey)), body: payload(), cycle: cycle}
	now := time.Now()
	id := traffic.EventID(seed, 0)
	req := &hookonce.Request{Method: http.MethodPost, Body: c.body, Now: now, Header: http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"bench"}, "Webhook-Id": {id},
	}}
	if err := benchProvider().Sign(req); err != nil {
		return nil, err
	}
	c.middle = fmt.Appendf(nil, ".%d.", now.Unix())
	c.template = t.Request(req.Header, c.body)
	c.id = bytes.Index(c.template, []byte(id))
	c.path = bytes.Index(c.template, []byte(sourcePath(0))) + len(sourcePath(0)) - 2
	c.sig = bytes.Index(c.template, []byte("v1,")) + len("v1,")
	first := c.sign(id)
	if signed := c.template[c.sig:][:base64.StdEncoding.EncodedLen(len(first))]; string(signed) != base64.StdEncoding.EncodeToString(first[:]) {
		return nil, errors.New("the generator signs differently from the provider")
	}
	c.signatures = make([][sha256.Size]byte, n)
	for i := range c.signatures {
		c.signatures[i] = c.sign(traffic.EventID(seed, i))
	}
	return c, nil
}

func (c *corpus) sign(id string) (sum [sha256.Size]byte) {
	c.mac.Reset()
	c.mac.Write([]byte(id))
	c.mac.Write(c.middle)
	c.mac.Write(c.body)
	c.mac.Sum(sum[:0])
	return sum
}

// request is the Next of a [loadgen.Load].
func (c *corpus) request(buf []byte) []byte {
	if buf == nil {
		buf = bytes.Clone(c.template)
	}
	i := c.next
	if c.next++; c.cycle {
		i %= len(c.signatures)
	}
	id := traffic.EventID(c.seed, i)
	var sum [sha256.Size]byte
	if i < len(c.signatures) {
		sum = c.signatures[i]
	} else {
		sum = c.sign(id)
	}
	copy(buf[c.id:], id)
	if c.sources > 0 {
		source := i % c.sources
		buf[c.path], buf[c.path+1] = '0'+byte(source/10), '0'+byte(source%10)
	}
	base64.StdEncoding.Encode(buf[c.sig:], sum[:])
	return buf
}
