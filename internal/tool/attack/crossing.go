//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// signedBatch returns a post of a body to the batches.
func (rn *runner) signedBatch(body []byte) (*http.Request, error) {
	mac := hmac.New(sha256.New, []byte(batchSecret))
	mac.Write(body)
	req, err := http.NewRequest(http.MethodPost, rn.sender.url+"/in/batches", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
	return req, nil
}

// send sends a request on a connection of its own until ctx ends.
func send(ctx context.Context, req *http.Request) (status int, err error) {
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	res, err := client.Do(req.WithContext(ctx))
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// batch returns a document with so many items of a type, and so many bytes around them that belong to each.
func batch(name, kind string, items, around int) (body []byte, keys []string) {
	var b bytes.Buffer
	b.WriteString(`{"note":"`)
	b.Write(bytes.Repeat([]byte("n"), around))
	b.WriteString(`","items":[`)
	for i := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		keys = append(keys, fmt.Sprintf("%s-%d", name, i))
		fmt.Fprintf(&b, `{"id":%q,"type":%q}`, keys[i], kind)
	}
	b.WriteString("]}")
	return b.Bytes(), keys
}

// growBatches posts 64 batches at once, each of 60 items that repeat what surrounds them. No route wants them: what is
// attacked is the way in.
func growBatches(ctx context.Context, rn *runner) error {
	size := 2_900_000
	if rn.small {
		size = 400_000
	}
	var all sync.WaitGroup
	for i := range 64 {
		body, _ := batch(fmt.Sprint("grown-", i), "unwanted", 60, size)
		req, err := rn.signedBatch(body)
		if err != nil {
			return err
		}
		all.Go(func() { rn.count(outcome(send(ctx, req))) })
	}
	all.Wait()
	return nil
}

// bigBatch posts one batch of 9 000 items until it is acknowledged, as providers do.
func bigBatch(ctx context.Context, rn *runner) error {
	items := 9000
	if rn.small {
		items = 900
	}
	body, keys := batch("big", "item", items, 100)
	began := time.Now()
	for ctx.Err() == nil && time.Since(began) < patience {
		req, err := rn.signedBatch(body)
		if err != nil {
			return err
		}
		status, err := send(ctx, req)
		rn.count(outcome(status, err))
		if _, err = rn.sender.acknowledge(status, err, keys...); err == nil && status/100 == 2 {
			rn.note("the batch got in after %s", short(time.Since(began)))
			return nil
		}
		pause(ctx, 200*time.Millisecond)
	}
	rn.breaks("the batch never got in")
	return nil
}

// captured returns the lines of header and the body of a genuine request that somebody got hold of.
func (rn *runner) captured(key string) (header string, body []byte, err error) {
	req, err := rn.sender.signed(key, eventBody(key))
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	if err := req.Header.Write(&b); err != nil {
		return "", nil, err
	}
	body, err = io.ReadAll(req.Body)
	return b.String(), body, err
}

// spoiled is how somebody changes the lines of header of a captured request, and what it is answered.
type spoiled struct {
	name   string
	change func(header string) string
	want   int
}

// added puts lines before the others. Nobody minds them.
func added(name, lines string) spoiled {
	return spoiled{name, func(header string) string { return lines + header }, http.StatusOK}
}

// needed puts a line before the others that is too large, under a name whose lines are kept in any case.
func needed(name, value string) spoiled {
	s := added(name, name+": "+value+"\r\n")
	s.want = http.StatusRequestHeaderFieldsTooLarge
	return s
}

// insist asks the listener for senders from another address until it is answered: connections of strangers may be in the way for a
// moment.
func (rn *runner) insist(ctx context.Context, line, header, body string) (status int, text string, err error) {
	for end := time.Now().Add(patience); ; pause(ctx, 50*time.Millisecond) {
		status, text, err = rn.ask(ctx, rn.gateway.listen, line, "x", header, body)
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return status, text, err
		}
	}
}

// ahead sends captured requests that were changed, the genuine copy of each a moment later, and waits until the app has them.
func (rn *runner) ahead(ctx context.Context, all []spoiled, check func(name string, h http.Header)) error {
	for i, s := range all {
		key := fmt.Sprintf("%s%d", probe, i)
		header, body, err := rn.captured(key)
		if err != nil {
			return err
		}
		status, _, err := rn.insist(ctx, "POST /in/shop", s.change(header), string(body))
		rn.count(outcome(status, err))
		if err != nil || status != s.want {
			rn.breaks("the copy with %s: %s, want %d", s.name, outcome(status, err), s.want)
		}
		req, err := rn.sender.signed(key, eventBody(key))
		if err != nil {
			return err
		}
		status, _, err = rn.sender.do(i, req)
		if _, err = rn.sender.acknowledge(status, err, key); err != nil || status/100 != 2 {
			rn.breaks("the genuine copy after %s: %s", s.name, outcome(status, err))
		}
	}
	deadline := time.Now().Add(patience)
	for i, s := range all {
		key := fmt.Sprintf("%s%d", probe, i)
		for rn.app.header(key) == nil && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		h := rn.app.header(key)
		if h == nil {
			rn.breaks("not delivered after %s", s.name)
			continue
		}
		check(s.name, h)
	}
	return nil
}

// junk sends 20 KB of header: under one name, many, the provider's own, and names that are needed.
func junk(ctx context.Context, rn *runner) error {
	var lines, own strings.Builder
	for i := range 150 {
		fmt.Fprintf(&lines, "X-Junk-%d: %s\r\n", i, strings.Repeat("j", 120))
		fmt.Fprintf(&own, "Webhook-Junk-%d: %s\r\n", i, strings.Repeat("j", 115))
	}
	big := strings.Repeat("j", 20_000)
	all := []spoiled{added("150 lines", lines.String()), added("150 lines of the provider's prefix", own.String())}
	for _, name := range []string{"X-Junk", "Webhook-Junk", "Svix-Junk", "Traceparent", "Accept", "Hookonce-Junk"} {
		all = append(all, added(name, name+": "+big+"\r\n"))
	}
	for _, name := range []string{"Svix-Id", "Svix-Signature", "User-Agent", "Content-Encoding", "Content-Type"} {
		all = append(all, needed(name, big))
	}
	all = append(all, spoiled{"20 KB in the signature's own line", func(header string) string {
		return strings.Replace(header, "Webhook-Signature: ", "Webhook-Signature: v1,"+big+" ", 1)
	}, http.StatusRequestHeaderFieldsTooLarge}, spoiled{"a hundred lines of signature", func(header string) string {
		return header + strings.Repeat("Webhook-Signature: v1,"+strings.Repeat("j", 180)+"\r\n", 100)
	}, http.StatusUnauthorized})
	return rn.ahead(ctx, all, func(name string, h http.Header) {
		if h.Get("Webhook-Signature") == "" || h.Get("Webhook-Id") == "" {
			rn.breaks("the signature is gone after %s", name)
		}
	})
}

// believed are headers that apps, frameworks and servers believe: those of the advisories on httpoxy
// (https://httpoxy.org), overrides of Symfony, IIS and Rack, what proxies and content networks say of the client, what
// authenticating proxies say of the user, and CVE-2025-29927 of Next.js.
var believed = []string{
	"Proxy", "X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Original-Host", "X-Host",
	"X-Original-Method", "X-Original-Uri", "X-Envoy-Original-Path", "X-Middleware-Subrequest", "X-Accel-Redirect", "X-Accel-Mapping", "X-Sendfile-Type",
	"X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Cluster-Client-Ip", "Fastly-Client-Ip", "Fly-Client-Ip", "X-Azure-Clientip",
	"X-Appengine-User-Ip", "X-Envoy-External-Address", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "Forwarded", "Via",
	"Remote-User", "X-Remote-User", "X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Access-Token", "X-Authenticated-User", "X-Webauth-User",
	"X-Auth-Request-User", "X-Auth-Request-Email", "X-Goog-Authenticated-User-Email", "X-Amzn-Oidc-Identity", "X-Amzn-Oidc-Data", "X-Ms-Client-Principal-Name",
	"Cf-Access-Authenticated-User-Email", "Cf-Access-Jwt-Assertion", "Tailscale-User-Login", "X-Pomerium-Jwt-Assertion", "X-Vouch-User", "X-Consumer-Username",
	"Ssl-Client-Verify", "Ssl-Client-Cert", "X-Ssl-Client-Verify", "X-Ssl-Client-Dn", "X-Client-Cert", "X-Forwarded-Client-Cert", "X-Arr-Clientcert",
	"Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Range", "If-Unmodified-Since", "Cookie", "Authorization", "Proxy-Authorization", "Te", "Upgrade",
	"Webhook_id", "Webhook.id", "Webhook_signature", "Hookonce_event", "Hookonce.event", "Hookonce_key", "Idempotency_key", "Idempotency.key", "Content_type",
}

// foreign sends headers that others believe, and has Connection name those that are needed.
func foreign(ctx context.Context, rn *runner) error {
	var lines strings.Builder
	for _, name := range believed {
		fmt.Fprintf(&lines, "%s: spoofed\r\n", name)
	}
	return rn.ahead(ctx, []spoiled{
		added("headers that others believe", lines.String()),
		added("Connection that names what is needed", "Connection: Webhook-Id, Webhook-Signature, Webhook-Timestamp, Content-Type\r\n"),
		added("two lines of Connection", "Connection: close, webhook-signature\r\nConnection: content-type\r\n"),
		added("another Content-Type", "Content-Type: text/html\r\n"),
		added("names of ours", "Hookonce-Key: spoofed\r\nHookonce-Stale: spoofed\r\nHookonce-Junk: spoofed\r\nIdempotency-Key: spoofed\r\n"),
	}, func(name string, h http.Header) {
		for _, n := range slices.Sorted(maps.Keys(h)) {
			if slices.Contains(h[n], "spoofed") {
				rn.breaks("%s reaches the app", n)
			}
		}
		for _, n := range []string{"Webhook-Id", "Webhook-Signature", "Webhook-Timestamp", "Content-Type"} {
			if h.Get(n) == "" {
				rn.breaks("%s is gone after %s", n, name)
			}
		}
	})
}

// ask sends one request from another address and returns the answer.
func (rn *runner) ask(ctx context.Context, address, line, host, header, body string) (status int, text string, err error) {
	c, err := dial(ctx, address, one(0))
	if err != nil {
		return 0, "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(giveUp))
	if _, err := c.Write(request(line, host, header, body)); err != nil {
		return 0, "", err
	}
	r, _, err := receive(c, nil)
	return r.Status, string(r.Body), err
}

// admin asks the admin listener.
func (rn *runner) admin(ctx context.Context, path string, header http.Header) (status int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+rn.gateway.admin+path, nil)
	if err != nil {
		return 0, "", err
	}
	maps.Copy(req.Header, header)
	clients := newClients()
	return clients.do(1, req)
}

// tenant poisons keys of a victim.
func tenant(ctx context.Context, rn *runner) error {
	for i, poison := range []struct {
		lines   string
		refused bool
	}{
		{"Connection: X-Tenant\r\nX-Tenant: victim\r\n", true},
		{"connection: close,  x-tenant\r\nX-Tenant: victim\r\n", true},
		{"Connection: close\r\nConnection: X-TENANT\r\nX-Tenant: victim\r\n", true},
		{"Keep-Alive: X-Tenant\r\nConnection: Keep-Alive, X-Tenant\r\nX-Tenant: victim\r\n", true},
		{"Proxy-Connection: X-Tenant\r\nX-Tenant: victim\r\n", false}, // it takes nothing off
		{"Connection: Idempotency-Key\r\nX-Tenant: victim\r\n", true},
		{"X-Tenant: victim\r\nX_Tenant: attacker\r\n", true},
		{"X-Tenant: victim\r\nX.Tenant: attacker\r\n", true},
		{"X-Tenant: victim\r\nX-Tenant: attacker\r\n", true},
		{"Connection: upgrade, x-tenant\r\nUpgrade: websocket\r\nX-Tenant: victim\r\n", true},
	} {
		key, name := fmt.Sprintf("%stenant-%d", probe, i), strings.ReplaceAll(strings.TrimSpace(poison.lines), "\r\n", ", ")
		pay := func(lines string) (status int, text string, err error) {
			return rn.insist(ctx, "POST /in/mine/pay", lines+fmt.Sprintf("Idempotency-Key: %q\r\n", key), "{}")
		}
		const ofVictim = "of tenant victim"
		status, text, err := pay(poison.lines)
		rn.count(outcome(status, err))
		asked := rn.app.times("/"+key) + rn.app.times("victim/"+key) + rn.app.times("attacker/"+key)
		refused := status == http.StatusBadRequest || status == http.StatusForbidden
		switch {
		case poison.refused && (err != nil || !refused || asked > 0):
			rn.breaks("%q is answered %s, and the service is asked %d times", name, outcome(status, err), asked)
		case !poison.refused && (err != nil || text != ofVictim):
			rn.breaks("%q is answered %s, %q", name, outcome(status, err), text)
		}
		if status, text, err = pay("X-Tenant: victim\r\n"); err != nil || text != ofVictim {
			rn.breaks("the victim is answered %s, %q, after %q", outcome(status, err), text, name)
		}
	}
	return nil
}

func ownHeaders(ctx context.Context, rn *runner) error {
	key := probe + "own"
	header := "Authorization: " + goodToken + "\r\nIdempotency-Key: \"" + key + "\"\r\n" +
		"Hookonce-Source: spoofed\r\nHOOKONCE-Key: spoofed\r\nHookonce_Event: spoofed\r\nHookonce.Stale: spoofed\r\nX-Hookonce: fine\r\n"
	status, _, err := rn.ask(ctx, rn.gateway.listen, "POST /in/charges/x", "x", header, "{}")
	h := rn.app.header(key)
	if err != nil || status != 200 || h == nil {
		rn.breaks("a call with headers of ours: %s", outcome(status, err))
	}
	for _, n := range slices.Sorted(maps.Keys(h)) {
		if slices.Contains(h[n], "spoofed") {
			rn.breaks("%s reaches the service", n)
		}
	}
	return nil
}

func metricsHost(ctx context.Context, rn *runner) error {
	for _, path := range []string{"/metrics", "/api/v1/events"} {
		if status, _, err := rn.ask(ctx, rn.gateway.admin, "GET "+path, "rebound.example", "", ""); err != nil || status/100 == 2 {
			rn.breaks("%s under another name: %s", path, outcome(status, err))
		}
	}
	return nil
}

// wrongTokens guesses from the operator's address while the operator works.
func wrongTokens(ctx context.Context, rn *runner) error {
	var all sync.WaitGroup
	all.Go(func() {
		rn.flood(ctx, flooder{admin: true, conns: 8, from: here, pace: 5 * time.Millisecond, next: func(i, n int) []byte {
			return request("GET /api/v1/events", rn.gateway.admin, fmt.Sprintf("Authorization: Bearer guess-%d-%d\r\n", i, n), "")
		}})
	})
	operator := newClients()
	s := steady(ctx, 20, func(n int) (int, error) {
		req, err := http.NewRequest(http.MethodGet, "http://"+rn.gateway.admin+"/api/v1/events", nil)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Authorization", "Bearer "+operatorToken)
		status, _, err := operator.do(n, req)
		return status, err
	})
	all.Wait()
	if s.share() < rn.least() {
		rn.breaks("the operator: %d of %d in time, %s", s.InTime, s.Sent, counts(s.Others))
	}
	return nil
}

// checkToken wants wrong tokens to be slowed, told and counted.
func checkToken(ctx context.Context, rn *runner) {
	rn.mu.Lock()
	slowed := rn.hostile["429"]
	rn.mu.Unlock()
	if slowed == 0 {
		rn.breaks("wrong tokens are not slowed")
	}
	if !rn.gateway.says("token") {
		rn.breaks("no line tells of wrong tokens")
	}
	if rn.gateway.says("guess-") {
		rn.breaks("a guessed token is logged")
	}
	_, text, err := rn.admin(ctx, "/metrics", http.Header{"Authorization": {"Bearer " + operatorToken}})
	if err != nil || !strings.Contains(text, "hookonce_admin") {
		rn.breaks("no metric tells of wrong tokens")
	}
}
