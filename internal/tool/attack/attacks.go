//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/loglimit"
)

// attack is one row of the table.
type attack struct {
	name string // as in docs/security.md
	what string
	// run attacks until ctx ends, which is when its time is over. It may return before.
	run func(ctx context.Context, rn *runner) error
	// check looks at what the attack left, once what was acknowledged is delivered. Nil: nothing.
	check func(ctx context.Context, rn *runner)

	variant   bool          // it differs little from the one before, and is left out of tests
	whole     bool          // it is over when all is done that it consists of, however long a busy machine takes
	calls     bool          // the genuine sender calls the service charges instead of posting events
	atLeast   time.Duration // what it takes, in small as well
	rate      int           // of the genuine sender per second, 0: 50
	files     int           // limit of open files of the gateway, 0: that of this process
	tokens    string        // lines of the configuration that name admin tokens
	appHeader int           // what the app is told its largest header is, 0: that of net/http
	observed  bool          // there is a source in mode: observe, with which a gateway is always ready
	sqlite    bool          // it attacks the file
	refuses   bool          // nothing may be acknowledged meanwhile, so that requests and readiness are not judged

	memory int64 // bound in bytes, 0: usualMemory
	lines  int   // bound per second, 0: usualLines
}

const (
	// usualMemory is what docs/security.md states for a gateway with default settings.
	usualMemory = 768 << 20
	// usualLines is what docs/security.md states for the lines that strangers cause in a second.
	usualLines = loglimit.PerLog + loglimit.MaxCounts + 1
)

func (a attack) memoryBound() int64 { return cmp.Or(a.memory, usualMemory) }

// linesBound is that of an attack that took so long: a second begins and ends in the middle.
func (a attack) linesBound(d time.Duration) int {
	return cmp.Or(a.lines, usualLines) * (int(d/time.Second) + 2)
}

// operatorToken is that of the admin listener.
const operatorToken = "a-fake-token-for-operators"

const withTokens = `admin_tokens: [{name: oncall, token: "file:token", role: operator}]`

var attacks = []attack{
	{name: "calm", what: "nobody attacks: what the machine gives", run: func(context.Context, *runner) error { return nil }},

	// Batches.
	{name: "batch-growth", whole: true, what: "64 signed batches at once, of 2.9 MB each, whose items grow as far as they may", run: growBatches},
	{name: "batch-9000", whole: true, what: "a batch of 9 000 items at steady load", rate: 200, atLeast: 4 * time.Second, run: bigBatch},

	// Bodies.
	{name: "announce-source", what: "5 000 connections from one address announce a body to a source and do not send it", run: announce("/in/shop", 5000, one)},
	{name: "announce-source-here", variant: true, what: "the same from the genuine sender's address", run: announce("/in/shop", 5000, here)},
	{name: "announce-source-many", variant: true, what: "the same from 500 addresses", run: announce("/in/shop", 5000, many(500))},
	{name: "announce-source-late", variant: true, what: "as many connections as there may be, from 500 addresses, announce a body and stay until its time is over", atLeast: 15 * time.Second, run: announce("/in/shop", 4096, many(500))},
	{name: "announce-service-56", what: "56 connections announce a body to a service", calls: true, run: announce("/in/charges/x", 56, one)},
	{name: "announce-service-1000", variant: true, what: "1 000 connections announce a body to a service", calls: true, run: announce("/in/charges/x", 1000, one)},
	{name: "announce-service-here", variant: true, what: "the same from the genuine sender's address", calls: true, run: announce("/in/charges/x", 1000, here)},
	{name: "first-byte", what: "5 000 connections send one byte of 1 MiB", run: partly("/in/shop", 5000, one, 1)},
	{name: "dribble", what: "5 000 connections send a byte each second", run: dribble("/in/shop", 5000, one)},
	{name: "dribble-many", variant: true, what: "the same from 500 addresses", run: dribble("/in/shop", 5000, many(500))},
	{name: "all-but-last", what: "1 000 connections send 256 KiB but for the last byte", run: partly("/in/shop", 1000, one, 256<<10-1)},
	{name: "all-but-last-here", variant: true, what: "the same from the genuine sender's address", run: partly("/in/shop", 1000, here, 256<<10-1)},
	{name: "all-but-last-many", variant: true, what: "the same from 100 addresses", run: partly("/in/shop", 1000, many(100), 256<<10-1)},
	{name: "all-but-last-service", variant: true, what: "the same to a service", calls: true, run: partly("/in/charges/x", 1000, one, 256<<10-1)},
	{name: "form-parts", what: "16 connections call a service with forms of 1 MiB of empty parts", calls: true, run: forms(16)},
	{name: "announce-observed", observed: true, what: "5 000 connections announce a body to a source in mode: observe", run: announce("/in/watched", 5000, one)},
	{name: "forged", what: "32 connections from one address post forged bodies of 512 KiB", run: forged(32, 512<<10)},

	// Connections.
	{name: "descriptors", what: "3 000 idle connections to a gateway with 1 024 open files", files: 1024, run: idle(3000, many(3)), check: checkDescriptors},
	{name: "descriptors-one", variant: true, what: "the same from one address", files: 1024, run: idle(3000, one), check: checkDescriptors},
	{name: "descriptors-here", variant: true, what: "the same from the genuine sender's address", files: 1024, run: idle(3000, here), check: checkDescriptors},
	{name: "churn", what: "connections that are opened and closed, 32 at a time", run: churn},
	{name: "slow-headers", what: "5 000 connections send a line of header each second", run: slowHeaders(5000, many(500))},
	{name: "headers", what: "5 000 connections send 60 KB of tiny lines of header, and never end it", run: headers(5000, one)},
	{name: "headers-many", variant: true, what: "the same from 500 addresses", run: headers(5000, many(500))},
	{name: "headers-here", variant: true, what: "the same from the genuine sender's address", run: headers(5000, here)},
	{name: "kept", what: "5 000 connections post something forged and stay", run: kept(5000, many(50))},
	{name: "hung-service", what: "2 000 calls to a service that does not answer", run: hung("POST /in/charges/hang", 2000)},
	{name: "hung-service-read", what: "5 000 reads of a service that does not answer", run: hung("GET /in/charges/hang", 5000)},
	{name: "hung-observed", observed: true, what: "5 000 forged requests to an observed app that does not answer", run: hung("POST /in/watched", 5000)},
	{name: "deaf", what: "500 connections ask without end and read no answer", run: deaf(500)},
	{name: "admin-connections", what: "3 000 idle connections to the admin listener of a gateway with 1 024 open files", files: 1024, run: adminIdle(3000)},

	// What HTTP allows.
	{name: "pipelined", what: "forged requests, 200 at a time without waiting", run: pipelined},
	{name: "old-http", what: "forged requests of HTTP/1.0", run: oldHTTP},
	{name: "chunk-extensions", what: "chunks of one byte with 1 000 bytes of extension each", run: chunks(strings.Repeat("x", 1000))},
	{name: "tiny-chunks", what: "bodies in chunks of one byte", run: chunks("")},
	{name: "expect", what: "2 000 connections ask whether to go on, and do not", run: expect(2000)},

	// The admin listener.
	{name: "readyz", what: "3 000 connections ask for readiness", run: asks("/readyz", 3000, one)},
	{name: "readyz-here", variant: true, what: "the same from the address of whoever asks for health", run: asks("/readyz", 3000, here)},
	{name: "metrics", what: "500 connections ask for /metrics", run: asks("/metrics", 500, one)},
	{name: "searches", what: "32 bearers of a token search all bodies without end", tokens: withTokens, run: asks("/api/v1/events?field=json:$.data.note%3Dnothing", 32, one)},
	{name: "admin-tokens", what: "wrong tokens beside the right one, from the operator's address", tokens: withTokens, run: wrongTokens, check: checkToken},

	// Lines of log.
	{name: "lines-unknown", what: "requests to sources that there are not", run: flood("POST /in/%s", "")},
	{name: "lines-keyless", what: "requests to a service without a key", run: flood("POST /in/charges/x", "Authorization: Bearer nobody-%s\r\n")},
	{name: "lines-scopeless", variant: true, what: "requests to a service without its scope", run: flood("POST /in/charges/x", "Idempotency-Key: key-%s\r\n")},
	{name: "lines-forged", what: "forged requests", run: flood("POST /in/shop", "Webhook-Id: evt-%s\r\nWebhook-Timestamp: 1\r\nWebhook-Signature: v1,bm8=\r\n")},
	{name: "lines-handshake", what: "handshakes with a wrong token", run: flood("GET /in/pages?hub.mode=subscribe&hub.challenge=1&hub.verify_token=%s", "")},
	{name: "lines-observed", observed: true, what: "forged requests to a source in mode: observe", run: flood("POST /in/watched", "Webhook-Id: evt-%s\r\nWebhook-Timestamp: 1\r\nWebhook-Signature: v1,bm8=\r\n"), check: checkObserved},
	{name: "lines-method", what: "odd methods and versions", run: flood("M%s /in/shop", "")},
	{name: "lines-path", what: "long and odd paths", run: flood("POST /in/shop/"+strings.Repeat("%%0a", 2000)+"%s", "")},

	// Rows.
	{name: "rows-401", what: "calls that the service answers 401, each with a new key", calls: true, run: callers("/in/charges/x", one), check: checkRows(0)},
	{name: "rows-404", what: "calls that the service answers 404, each with a new key", calls: true, run: callers("/in/charges/gone", one), check: checkRows(rowsOfAddress)},
	{name: "rows-500", variant: true, what: "calls that the service answers 500, each with a new key", calls: true, run: callers("/in/charges/ill", one), check: checkRows(rowsOfAddress)},

	// Lines that must not be crossed.
	{name: "junk-headers", whole: true, what: "captured requests with 20 KB of header of their own, ahead of the genuine copy, to an app that takes 8 KiB", appHeader: 4 << 10, run: junk},
	{name: "foreign-headers", whole: true, what: "captured requests with headers that others believe", run: foreign},
	{name: "tenant", whole: true, what: "Connection: X-Tenant against idempotency.scope", calls: true, run: tenant},
	{name: "own-headers", whole: true, what: "headers of the gateway's own names, sent to a service", calls: true, run: ownHeaders},
	{name: "metrics-host", whole: true, what: "/metrics asked under another name, as a page on another site does", run: metricsHost},

	// The file.
	{name: "sqlite-reader", whole: true, what: "somebody reads the database for long", sqlite: true, rate: 100, run: longReader},
	{name: "sqlite-deleted", what: "the database is deleted while the gateway runs", sqlite: true, refuses: true, run: loseFile(deleteFile)},
	{name: "sqlite-log-deleted", what: "the database's log is deleted while the gateway runs", sqlite: true, refuses: true, run: loseFile(deleteLog)},
	{name: "sqlite-replaced", what: "the database is replaced by a copy while the gateway runs", sqlite: true, refuses: true, run: loseFile(replaceFile)},
	{name: "sqlite-overwritten", what: "an older copy is written over the database while the gateway runs", sqlite: true, refuses: true, run: loseFile(overwriteFile)},
	{name: "sqlite-link", whole: true, what: "a second gateway on a hard link to the database", sqlite: true, run: secondName},
}

// rowsOfAddress is the setting new_keys of the services, which an attack of seconds must reach: how many rows one address may
// leave in an hour.
const rowsOfAddress = 200

// announce returns connections that announce 1 MiB.
func announce(path string, conns int, from origin) func(context.Context, *runner) error {
	return partly(path, conns, from, 0)
}

// forgedHeader has what a genuine request has, and no genuine signature. Calls have a scope and a key.
const forgedHeader = "Content-Type: application/json\r\nWebhook-Id: evt-%d-%d\r\nWebhook-Timestamp: %d\r\nWebhook-Signature: v1,bm8=\r\n" +
	"Authorization: Bearer nobody\r\nIdempotency-Key: \"key-%[1]d-%[2]d\"\r\n"

func headerOf(i, n int) string { return fmt.Sprintf(forgedHeader, i, n, time.Now().Unix()) }

// partly returns connections that announce a body, send so many bytes of it and stay.
func partly(path string, conns int, from origin, sent int) func(context.Context, *runner) error {
	announced := max(sent+1, 1<<20)
	if sent > 1 {
		announced = sent + 1
	}
	if strings.HasPrefix(path, "/in/charges") {
		announced = min(announced, 1<<20)
	}
	body := strings.Repeat(" ", sent)
	return holds(holder{conns: conns, from: from, first: func(i int) []byte {
		return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", path, headerOf(i, 0), announced, body)
	}})
}

func dribble(path string, conns int, from origin) func(context.Context, *runner) error {
	return holds(holder{
		conns: conns, from: from,
		first: func(i int) []byte {
			return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: 100000\r\n\r\n", path, headerOf(i, 0))
		},
		drip: func(int) []byte { return []byte(" ") },
	})
}

func forged(conns, size int) func(context.Context, *runner) error {
	body := strings.Repeat(" ", size)
	return floods(flooder{conns: conns, from: one, pace: 20 * time.Millisecond, next: func(i, n int) []byte {
		return request("POST /in/shop", "x", headerOf(i, n), body)
	}})
}

// forms returns calls with forms of as many parts as a body has room for.
func forms(conns int) func(context.Context, *runner) error {
	const part, end = "--b\n\n\n", "--b--\n"
	body := strings.Repeat(part, (1<<20-len(end))/len(part)) + end
	return floods(flooder{conns: conns, from: one, pace: 50 * time.Millisecond, next: func(i, n int) []byte {
		return request("POST /in/charges/x", "x", strings.Replace(headerOf(i, n), "application/json", "multipart/form-data; boundary=b", 1), body)
	}})
}

func idle(conns int, from origin) func(context.Context, *runner) error {
	return holds(holder{conns: conns, least: 1200, from: from})
}

func adminIdle(conns int) func(context.Context, *runner) error {
	return holds(holder{admin: true, conns: conns, least: 1200, from: one})
}

// checkDescriptors wants a line and a metric to tell that connections were refused or cut.
func checkDescriptors(ctx context.Context, rn *runner) {
	status, text, err := rn.admin(ctx, "/metrics", nil)
	switch {
	case err != nil || status != 200:
		rn.breaks("/metrics: %s", outcome(status, err))
	case !strings.Contains(text, "hookonce_connections"):
		rn.breaks("no metric tells of connections")
	}
	if !rn.gateway.says("connection") && !rn.gateway.says("too many open files") {
		rn.breaks("no line tells of connections")
	}
}

func headers(conns int, from origin) func(context.Context, *runner) error {
	tiny := strings.Repeat("a:\r\n", 15_000)
	return holds(holder{conns: conns, from: from, first: func(int) []byte {
		return []byte("POST /in/shop HTTP/1.1\r\nHost: x\r\n" + tiny)
	}})
}

func slowHeaders(conns int, from origin) func(context.Context, *runner) error {
	return holds(holder{
		conns: conns, from: from,
		first: func(int) []byte { return []byte("POST /in/shop HTTP/1.1\r\nHost: x\r\n") },
		drip:  func(int) []byte { return []byte("X-More: and more\r\n") },
	})
}

func churn(ctx context.Context, rn *runner) error {
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				c, err := dial(ctx, rn.gateway.listen, many(500)(n))
				if err != nil {
					rn.count("not connected")
					continue
				}
				rn.count("opened")
				_ = c.Close()
				pause(ctx, 5*time.Millisecond)
			}
		})
	}
	all.Wait()
	return nil
}

func kept(conns int, from origin) func(context.Context, *runner) error {
	return holds(holder{conns: conns, from: from, first: func(i int) []byte {
		return request("POST /in/shop", "x", headerOf(i, 0), "{}")
	}})
}

// hung returns requests that the app does not answer, each with a key of its own, and so good that it waits for them.
func hung(line string, conns int) func(context.Context, *runner) error {
	return holds(holder{conns: conns, from: many(50), first: func(i int) []byte {
		header := fmt.Sprintf("%s: yes\r\nAuthorization: Bearer nobody-%d\r\nIdempotency-Key: \"key-%d\"\r\n", hangs, i, i)
		return request(line, "x", header, "{}")
	}})
}

// deaf returns connections that fill both ends' buffers with answers that nobody reads.
func deaf(conns int) func(context.Context, *runner) error {
	many := strings.Repeat(string(request("GET /in/nothing", "x", "", "")), 200)
	return holds(holder{conns: conns, from: one, deaf: true, first: func(int) []byte { return []byte(many) }})
}

func pipelined(ctx context.Context, rn *runner) error {
	rn.hold(ctx, holder{
		conns: 8, least: 8, from: one,
		first: func(int) []byte { return nil },
		drip: func(i int) []byte {
			return []byte(strings.Repeat(string(request("POST /in/shop", "x", headerOf(i, 0), "{}")), 200))
		},
	})
	return nil
}

func oldHTTP(ctx context.Context, rn *runner) error {
	rn.flood(ctx, flooder{conns: 16, least: 16, from: one, pace: 5 * time.Millisecond, next: func(i, n int) []byte {
		return []byte(strings.Replace(string(request("POST /in/shop", "x", headerOf(i, n), "{}")), "HTTP/1.1", "HTTP/1.0", 1))
	}})
	return nil
}

// chunks returns bodies in chunks of one byte, each with an extension.
func chunks(extension string) func(context.Context, *runner) error {
	if extension != "" {
		extension = ";e=" + extension
	}
	part := strings.Repeat("1"+extension+"\r\n \r\n", 2000)
	return floods(flooder{conns: 8, least: 8, from: one, pace: 20 * time.Millisecond, next: func(i, n int) []byte {
		return []byte("POST /in/shop HTTP/1.1\r\nHost: x\r\n" + headerOf(i, n) + "Transfer-Encoding: chunked\r\n\r\n" + part + "0\r\n\r\n")
	}})
}

func expect(conns int) func(context.Context, *runner) error {
	return holds(holder{conns: conns, from: one, first: func(i int) []byte {
		return fmt.Appendf(nil, "POST /in/shop HTTP/1.1\r\nHost: x\r\n%sExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n", headerOf(i, 0))
	}})
}

// asks returns connections that ask the admin listener for a path, each once a second.
func asks(path string, conns int, from origin) func(context.Context, *runner) error {
	return func(ctx context.Context, rn *runner) error {
		ask := request("GET "+path, rn.gateway.admin, "Authorization: Bearer "+operatorToken+"\r\n", "")
		if strings.HasPrefix(path, "/readyz") {
			ask = request("GET "+path, rn.gateway.admin, "", "")
		}
		rn.flood(ctx, flooder{admin: true, conns: conns, from: from, pace: time.Second, next: func(int, int) []byte { return ask }})
		return nil
	}
}

// flood returns requests with a line and lines of header in which %s is another text each time.
func flood(line, header string) func(context.Context, *runner) error {
	return floods(flooder{conns: 16, least: 16, from: one, pace: 5 * time.Millisecond, next: func(i, n int) []byte {
		vary := func(text string) string {
			return strings.ReplaceAll(strings.ReplaceAll(text, "%s", fmt.Sprintf("n%d-%d", i, n)), "%%", "%")
		}
		return request(vary(line), "x", vary(header), "{}")
	}})
}
