package year

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// sender sends the events of a source in the way of its provider.
type sender struct {
	*world
	name     string
	provider *spec.Provider
	forger   *spec.Provider
	client   *http.Client
}

// kinds are the providers of the sources.
var kinds = map[string]string{"billing": "stripe", "orders": "hmac", synchronous: "hmac", open: "hmac", "payments": "gocardless", "storefront": "shopify"}

// lastTry is how long senders go on whose provider does not say.
const lastTry = 24 * time.Hour

func (w *world) newSender(name string) *sender {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return w.network.dial(ctx, senders, senders, address)
	}}
	return &sender{world: w, name: name, provider: w.providerOf(name, secretOf(name)), forger: w.providerOf(name, forgedSecretOf(name)), client: &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

// providerOf verifies, or signs, what the provider of a source sends.
func (w *world) providerOf(source, secret string) *spec.Provider {
	p, err := provider.Build(kinds[source], spec.Settings{Secrets: spec.Secrets(secret)})
	if err != nil {
		panic(err)
	}
	return p
}

// window is for how long the provider sends again by itself.
func (s *sender) window() time.Duration {
	if w := s.provider.Spec().Limits.Retry; w > 0 {
		return w
	}
	return lastTry
}

// delays are the waits between its tries: few at first, and then hours.
func delay(try int) time.Duration {
	all := []time.Duration{20 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour}
	return all[min(try, len(all)-1)]
}

// play sends an event, with all of its copies.
func (s *sender) play(e Event) {
	sleepUntil(s.begin.Add(time.Duration(e.At)))
	if e.Forged {
		s.forge(&e)
	}
	if e.HangUp > 0 {
		s.hangUp(&e)
	}
	acked := make(chan bool, len(e.Via)+1)
	for _, via := range e.Via {
		s.tasks.Go(func() { acked <- s.insist(&e, e.name(), via) })
	}
	if e.Conflict && !apart(e.Source) {
		s.tasks.Go(func() {
			time.Sleep(time.Second)
			acked <- s.insist(&e, e.name()+conflictMark, e.Via[0])
		})
		defer func() { <-acked }()
	}
	for range e.Via {
		<-acked
	}
	for i, wait := range e.Again {
		time.Sleep(time.Duration(wait))
		s.count("copies/late")
		s.insist(&e, e.name(), e.Via[0]+i+1)
	}
}

// called are the names of the events in a copy of a request, of which the first is called so.
func (s *sender) called(e *Event, name string) []string {
	_, mark, _ := strings.Cut(name, "~")
	if mark != "" {
		mark = "~" + mark
	}
	all := e.names()
	for i := range all {
		all[i] += mark
	}
	return all
}

// accepts books that a request was answered with a success.
func (s *sender) accepts(e *Event, name string, got reply, dead map[journal.DeliveryID]int64) {
	for _, name := range s.called(e, name) {
		s.acked(name, got, dead)
	}
}

// forge sends a copy that somebody else has signed.
func (s *sender) forge(e *Event) {
	s.count("copies/forged")
	got, err := s.post(context.Background(), e, e.name()+forgedMark, e.Via[0], s.forger)
	if err == nil && got.status/100 == 2 {
		s.accepts(e, e.name()+forgedMark, got, nil)
	}
}

// hungUpFor is how long what was sent, and not waited for, may take to be stored.
const hungUpFor = 15 * time.Second

// hangUp sends a copy, and hangs up before it is answered.
func (s *sender) hangUp(e *Event) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(e.HangUp))
	defer cancel()
	got, err := s.post(ctx, e, e.name(), e.Via[0], s.provider)
	if err == nil && got.status/100 == 2 {
		s.accepts(e, e.name(), got, nil)
	}
	if ctx.Err() == nil || e.Direct {
		return // it was answered in time, or could not be sent
	}
	hungUp := time.Now()
	s.log(s.name, e.name()+": its sender hangs up")
	time.Sleep(hungUpFor)
	for _, name := range e.names() {
		s.ledger.hungUp(s.events[name], hungUp)
	}
}

// insist sends until it reads a success, or the provider gives up.
func (s *sender) insist(e *Event, name string, via int) bool {
	began, calm := time.Now(), time.Time{}
	for try := 0; ; try++ {
		dead := s.deadAt(s.called(e, name))
		got, err := s.post(context.Background(), e, name, via+try, s.provider)
		switch {
		case err != nil:
			s.log(s.name, fmt.Sprintf("%s fails: %v", name, err))
			s.turnedAway(e, name, via+try, got, err)
		case got.status/100 == 2:
			s.accepts(e, name, got, dead)
			return true
		default:
			s.log(s.name, fmt.Sprintf("%s is answered %d by %s", name, got.status, gatewayName((via+try)%len(s.machines))))
			s.turnedAway(e, name, via+try, got, nil)
		}
		if s.isCalm() {
			if calm.IsZero() {
				calm = time.Now()
			}
			if time.Since(calm) > s.longest() {
				s.breaks("all comes to an end", "%s is not acknowledged although nothing has been disturbed for long: %d, %v", name, got.status, err)
				return false
			}
			time.Sleep(15 * time.Second)
			continue
		}
		wait := delay(try)
		if time.Since(began)+wait > s.window() {
			s.count("senders/give up")
			<-s.quiet // somebody sends it again by hand
			continue
		}
		select {
		case <-time.After(wait):
		case <-s.quiet:
		}
	}
}

// turnedAway books that a sender was told to come again, or nothing. A gateway that there is needs a reason for it.
func (s *sender) turnedAway(e *Event, name string, via int, got reply, err error) {
	f := s.events[e.name()]
	if err == nil {
		s.refused(f, name, got)
	}
	if m := s.machines[via%len(s.machines)]; !m.site.gone.Load() && time.Since(time.Unix(0, s.night.Load())) > calmSince {
		s.reasoned(f, name, got, err)
	}
}

// reply is what a sender reads.
type reply struct {
	status     int
	past       bool   // it says that the event was delivered past the store
	answer     string // of the application, see answerHeader
	retryAfter string
}

// post sends one copy to a gateway, and returns what that answers.
func (s *sender) post(ctx context.Context, e *Event, name string, via int, signer *spec.Provider) (reply, error) {
	address := ingestAddress(via % len(s.machines))
	if e.Direct {
		address = direct + ":80"
	}
	h, body := s.request(e, name)
	r := &hookonce.Request{Method: http.MethodPost, URL: "http://" + address + "/in/" + s.name, Header: h, Body: body, Now: time.Now()}
	if err := signer.Sign(r); err != nil {
		panic(err)
	}
	s.count("requests")
	if e.More > 0 {
		s.count("requests/several")
		s.large()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		panic(err)
	}
	req.Header = r.Header
	res, err := s.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return reply{res.StatusCode, res.Header.Get("Hookonce-Status") == string(journal.Unprotected), res.Header.Get(answerHeader), res.Header.Get("Retry-After")}, nil
}

// request is the content of an event. All of its copies have the same.
func (s *sender) request(e *Event, name string) (http.Header, []byte) {
	sum := sha256.Sum256([]byte(s.name + e.name()))
	id := hex.EncodeToString(sum[:8])
	if !e.Keyed {
		id = ""
	}
	if s.name == "payments" {
		return s.several(e, name)
	}
	if kinds[s.name] == "hmac" {
		key := ""
		if id != "" {
			key = fmt.Sprintf(`"id":%q,`, id)
		}
		return http.Header{"Content-Type": {"application/json"}}, fmt.Appendf(nil, `{"simulation":%q,%s"type":%q,"object":"o%d"}`, name, key, e.kind(), e.Object)
	}
	h, body := s.provider.Spec().Sample(spec.Sample{ID: id, Object: fmt.Sprintf("object%d", e.Object), Time: s.begin.Add(time.Duration(e.At)).Truncate(time.Second)})
	text := strings.Replace(string(body), "{", fmt.Sprintf(`{"simulation":%q,`, name), 1)
	return h, []byte(text)
}

// several is the content of a request that has more than one.
func (s *sender) several(e *Event, name string) (http.Header, []byte) {
	var items []string
	for i, name := range s.called(e, name) {
		key := ""
		if e.Keyed {
			key = fmt.Sprintf(`"id":"EV%d-%d",`, e.N, i)
		}
		items = append(items, fmt.Sprintf(`{"simulation":%q,%s"resource_type":"payments","action":"confirmed"}`, name, key))
	}
	return http.Header{"Content-Type": {"application/json"}}, []byte(`{"events":[` + strings.Join(items, ",") + `]}`)
}

func sleepUntil(t time.Time) { time.Sleep(time.Until(t)) }
