package redisstore_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/redisstore"
)

var errDeclined = errors.New("card declined")

// write is a call whose connection breaks. The claim was won before, except for the call that wins it.
type write struct {
	name   string
	do     func(ctx context.Context, s *redisstore.Store, c hookonce.Claim) error
	before hookonce.State // that is stored if the call did not take effect
	after  hookonce.State // and if it did
}

var brokenWrites = []write{
	{"complete", func(ctx context.Context, s *redisstore.Store, c hookonce.Claim) error { return s.Complete(ctx, c) },
		hookonce.StateProcessing, hookonce.StateDone},
	{"complete with a response", func(ctx context.Context, s *redisstore.Store, c hookonce.Claim) error {
		return s.CompleteWith(ctx, c, hookonce.Response{Status: http.StatusCreated, Body: []byte("ok")})
	}, hookonce.StateProcessing, hookonce.StateDone},
	{"fail", func(ctx context.Context, s *redisstore.Store, c hookonce.Claim) error {
		return s.Fail(ctx, c, hookonce.Failure{Err: errDeclined})
	}, hookonce.StateProcessing, hookonce.StateFailed},
	{"extend", func(ctx context.Context, s *redisstore.Store, c hookonce.Claim) error {
		_, err := s.Extend(ctx, c, time.Hour)
		return err
	}, hookonce.StateProcessing, hookonce.StateProcessing},
}

// A write whose connection breaks reports an error that claims no knowledge, was made once at most, and
// succeeds when it is made again.
func TestFaults(t *testing.T) {
	p := cutproxy.New(t, redistest.Addr(t), commands)
	for name, persisted := range map[string]bool{"failed, not persisted": false, "failed, but persisted": true} {
		for _, w := range brokenWrites {
			t.Run(w.name+" "+name, func(t *testing.T) {
				s := redisstore.New(connect(t, p.Addr()), redisstore.WithPrefix(fresh()))
				must(t, w.do(t.Context(), s, claim(t, s, leased("evt_0"), hookonce.Acquired))) // the server knows the script now
				c := claim(t, s, leased("evt_1"), hookonce.Acquired)
				p.Fail(writes, persisted)
				ignorant(t, w.do(t.Context(), s, c))
				state(t, s, c.Ref, map[bool]hookonce.State{false: w.before, true: w.after}[persisted])
				must(t, w.do(t.Context(), s, c))
				state(t, s, c.Ref, w.after)
			})
		}
		t.Run("claim "+name, func(t *testing.T) { faultClaim(t, p, persisted) })
	}
}

func leased(key string) hookonce.ClaimRequest {
	req := request(key)
	req.Lease = time.Minute
	return req
}

// faultClaim checks that a claim whose answer was lost is nobody's until its lease is over: the client
// must not send it again by itself, and find itself busy or won twice.
func faultClaim(t *testing.T, p *cutproxy.Proxy, persisted bool) {
	now := time.Now()
	s := redisstore.New(connect(t, p.Addr()), redisstore.WithPrefix(fresh()), redisstore.WithClock(func() time.Time { return now }))
	finish(t, s, "evt_0") // the server knows the script now
	p.Fail(writes, persisted)
	_, err := s.Claim(t.Context(), leased("evt_1"))
	ignorant(t, err)
	if !persisted {
		claim(t, s, leased("evt_1"), hookonce.Acquired)
		return
	}
	claim(t, s, leased("evt_1"), hookonce.Busy)
	now = now.Add(time.Minute)
	if c := claim(t, s, leased("evt_1"), hookonce.Acquired); c.Token != 2 {
		t.Fatalf("token is %d, want 2", c.Token)
	}
}

// ignorant checks that err says nothing about the claim.
func ignorant(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("a write that failed was reported as a success")
	}
	for _, known := range []error{hookonce.ErrStale, hookonce.ErrNotFound, hookonce.ErrBusy, hookonce.ErrInvalidRef} {
		if errors.Is(err, known) {
			t.Fatalf("a write that failed was reported as %v", err)
		}
	}
}

// state checks what is stored.
func state(t testing.TB, s hookonce.Store, ref hookonce.Ref, want hookonce.State) {
	t.Helper()
	c, err := s.Lookup(t.Context(), ref)
	must(t, err)
	if c.State != want {
		t.Fatalf("%s is %s, want %s", ref, c.State, want)
	}
}

// A server that does not know the scripts, because it was restarted or told to forget them, is told them.
func TestScriptsAreSentAgain(t *testing.T) {
	s, c := newStore(t)
	for _, key := range []string{"evt_1", "evt_2"} {
		must(t, c.ScriptFlush(t.Context()).Err())
		finish(t, s, key)
	}
}

// An ended context is the error, and nothing is asked of the server.
func TestEndedContext(t *testing.T) {
	s, _ := newStore(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDeclined)
	if _, err := s.Claim(ctx, request("evt_1")); !errors.Is(err, errDeclined) {
		t.Errorf("error is %v, want the context's cause", err)
	}
	if _, err := s.Lookup(t.Context(), request("evt_1").Ref); !errors.Is(err, hookonce.ErrNotFound) {
		t.Errorf("Lookup: %v, want nothing", err)
	}
}
