package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
)

const secret = "whsec_fake"

// patience bounds every wait for something that must happen.
const patience = 2 * time.Minute

// world is everybody else: a bank that sends webhooks, a mail service and a queue, which all remember what came.
type world struct {
	t       *testing.T
	server  *httptest.Server
	shop    string // address
	senders sync.WaitGroup
	client  http.Client

	mu      sync.Mutex
	rand    *rand.Rand
	keys    map[string]string   // Idempotency-Key: what it was for, first
	charged map[string]int      // order: cents, summed up over keys
	repaid  map[string]int      // refund
	mails   map[string]int      // "subject about": how many keys
	queue   map[string]*message // not acknowledged
	handed  map[string]time.Time
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), keys: map[string]string{}, charged: map[string]int{}, repaid: map[string]int{},
		mails: map[string]int{}, queue: map[string]*message{}, handed: map[string]time.Time{},
		client: http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", w.charge)
	mux.HandleFunc("POST /refunds", w.repay)
	mux.HandleFunc("POST /mail", w.post)
	mux.HandleFunc("GET /next", w.next)
	mux.HandleFunc("POST /acknowledge", w.acknowledge)
	w.server = httptest.NewServer(mux)
	t.Cleanup(w.server.Close)
	return w
}

// chance is true in one of n cases.
func (w *world) chance(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n) == 0
}

// first reports whether a request is the first under its key. The second half of what a service with idempotency
// does: other content under a known key is a fault, and of whoever sends it.
func (w *world) first(r *http.Request, into any) bool {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	key, what := r.Header.Get("Idempotency-Key"), r.URL.Path+string(body)
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.keys[key]
	if err != nil || key == "" || ok && known != what {
		w.t.Errorf("%s came under the key %q after %s, %v", what, key, known, err)
	}
	w.keys[key] = what
	return !ok
}

// answer answers, now and then with a fault although all is done.
func (w *world) answer(rw http.ResponseWriter) {
	if w.chance(8) {
		rw.WriteHeader(http.StatusBadGateway)
	}
}

func (w *world) charge(rw http.ResponseWriter, r *http.Request) {
	var o order
	if w.first(r, &o) {
		w.mu.Lock()
		w.charged[o.ID] += int(o.Cents)
		w.mu.Unlock()
		w.event("evt_charge_"+o.ID, "charge.succeeded", map[string]any{"id": "ch_" + o.ID, "object": "charge", "metadata": map[string]string{"order": o.ID}}, time.Now())
	}
	w.answer(rw)
}

func (w *world) repay(rw http.ResponseWriter, r *http.Request) {
	var back refund
	if w.first(r, &back) {
		w.mu.Lock()
		w.repaid[back.ID] += int(back.Cents)
		w.mu.Unlock()
		w.event("evt_refund_"+back.ID, "refund.updated", map[string]any{"id": "re_" + back.ID, "object": "refund", "metadata": map[string]string{"refund": back.ID}}, time.Now())
	}
	w.answer(rw)
}

func (w *world) post(rw http.ResponseWriter, r *http.Request) {
	var m mail
	if w.first(r, &m) {
		w.mu.Lock()
		w.mails[m.Subject+" "+m.About]++
		w.mu.Unlock()
	}
	w.answer(rw)
}

// next hands out a message that nobody was given within a moment.
func (w *world) next(rw http.ResponseWriter, _ *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, m := range w.queue {
		if time.Since(w.handed[id]) > 300*time.Millisecond {
			w.handed[id] = time.Now()
			_ = json.NewEncoder(rw).Encode(m)
			return
		}
	}
	rw.WriteHeader(http.StatusNoContent)
}

func (w *world) acknowledge(_ http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.queue, r.FormValue("id"))
}

// event sends an event until it is acknowledged, and sometimes once more, or twice at a time.
func (w *world) event(id, kind string, about map[string]any, at time.Time) {
	body, err := json.Marshal(map[string]any{"id": id, "object": "event", "type": kind, "created": at.Unix(), "data": map[string]any{"object": about}})
	if err != nil {
		w.t.Error(err)
	}
	copies := 1
	if w.chance(2) {
		copies = 2
	}
	for range copies {
		w.senders.Go(func() { w.insist("/webhooks/stripe", body, http.StatusOK, sign) })
	}
}

// sign signs a request as the bank does.
func sign(r *http.Request, body []byte) error {
	signed := hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: time.Now()}
	return provider.Stripe(secret).Sign(&signed)
}

// insist posts until it is answered with the status, whatever else the shop says or does, and returns the answer.
func (w *world) insist(path string, body []byte, status int, prepare func(r *http.Request, body []byte) error) []byte {
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		r, err := http.NewRequest(http.MethodPost, w.shop+path, bytes.NewReader(body))
		if err == nil {
			err = prepare(r, body)
		}
		if err != nil {
			w.t.Error(err)
			return nil
		}
		answer, err := w.client.Do(r)
		if err != nil {
			last = err.Error()
			continue
		}
		said, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if last = fmt.Sprint(answer.Status, " ", string(said), err); err == nil && answer.StatusCode == status {
			return said
		}
	}
	w.t.Errorf("%s %s: not in time, at last %s", path, body, strings.TrimSpace(last))
	return nil
}

// buy is a customer: orders, has it shipped and, now and then, wants the money back.
func (w *world) buy(reference string, cents int, refunded bool) {
	with := func(key string) func(*http.Request, []byte) error {
		return func(r *http.Request, _ []byte) error {
			r.SetBasicAuth("customer", "fake")
			r.Header.Set("Idempotency-Key", key)
			return nil
		}
	}
	var o order
	said := w.insist("/orders", fmt.Appendf(nil, `{"reference":%q,"cents":%d}`, reference, cents), http.StatusCreated, with("order-"+reference))
	if json.Unmarshal(said, &o) != nil {
		return
	}
	w.mu.Lock()
	w.queue["pack-"+o.ID] = &message{ID: "pack-" + o.ID, Order: o.ID}
	w.mu.Unlock()
	if refunded {
		w.insist("/refunds", fmt.Appendf(nil, `{"order":%q,"reference":%q,"cents":%d}`, o.ID, reference, cents), http.StatusCreated, with("refund-"+reference))
	}
}
