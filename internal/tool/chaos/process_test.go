package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// patience bounds one delivery. None takes that long unless something hangs.
const patience = 45 * time.Second

// process is a process of the application, with a pool of its own. It takes deliveries in two ways.
type process struct {
	webhook http.Handler
	within  func(ctx context.Context, key string) (hookonce.Claim, error)
	lookup  func(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error)
}

// newProcess returns a process on a store. Do runs a statement in a transaction of its driver.
func newProcess[Tx any](b *bank, store hookonce.TxStore[Tx], do func(ctx context.Context, tx Tx, text string, args ...any) error) *process {
	handle := func(ctx context.Context, tx Tx, key string) error {
		return b.handle(ctx, func(ctx context.Context, text string, args ...any) error { return do(ctx, tx, text, args...) }, key)
	}
	return &process{
		webhook: hookonce.Webhook(store, "bank", courier{}, func(ctx context.Context, tx Tx, ev *hookonce.Event) error {
			return handle(ctx, tx, ev.Key)
		}, hookonce.WithTimeout(patience), hookonce.WithLogger(slog.New(slog.DiscardHandler))),
		within: func(ctx context.Context, key string) (hookonce.Claim, error) {
			return store.Within(ctx, hookonce.ClaimRequest{Ref: ref(key), Digest: []byte("transfer")}, func(tx Tx, _ hookonce.Claim) error {
				return handle(ctx, tx, key)
			})
		},
		lookup: store.Lookup,
	}
}

// join has a process take part in the round.
func (r *round) join(p *process) { r.deliver = append(r.deliver, p.post, p.call) }

// courier is a provider that everybody believes, and whose keys are the body.
type courier struct{}

// Profile implements [hookonce.Provider].
func (courier) Profile() hookonce.Profile { return hookonce.Profile{Name: "courier"} }

// Open implements [hookonce.Provider].
func (courier) Open(r *hookonce.Request) (*hookonce.Verified, error) {
	return &hookonce.Verified{Events: []hookonce.Event{{Key: string(r.Body), Digest: []byte("transfer"), Body: r.Body}}}, nil
}

// post delivers an event over HTTP.
func (p *process) post(ctx context.Context, key string) (receipt, error) {
	w := httptest.NewRecorder()
	p.webhook.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/bank", strings.NewReader(key)))
	status := w.Header().Get("Hookonce-Status")
	switch {
	case w.Code == http.StatusOK && status == "dead":
		return givenUp, nil
	case w.Code == http.StatusOK:
		return acknowledged, nil
	case w.Code == http.StatusServiceUnavailable:
		return unacknowledged, fmt.Errorf("it is answered 503, %s", status)
	}
	text, _ := io.ReadAll(w.Body)
	return unacknowledged, fatalError{fmt.Errorf("it is answered %d: %s", w.Code, text)}
}

// call delivers an event as a program does that reads it from a queue.
func (p *process) call(ctx context.Context, key string) (r receipt, err error) {
	defer func() {
		if v := recover(); v != nil {
			r, err = unacknowledged, fmt.Errorf("panic: %v", v)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := p.within(ctx, key)
	switch {
	case err == nil && c.Verdict != hookonce.Acquired && c.Verdict != hookonce.Duplicate:
		return unacknowledged, fatalError{fmt.Errorf("no error, and the verdict is %v", c.Verdict)}
	case err == nil && c.Conflict:
		return unacknowledged, fatalError{errors.New("a copy is taken for another content")}
	case err == nil:
		return acknowledged, nil
	case hookonce.IsPermanent(err) && !errors.Is(err, hookonce.ErrTraceLost) && !errors.Is(err, hookonce.ErrUnknownOutcome):
		return givenUp, nil
	}
	return unacknowledged, err
}
