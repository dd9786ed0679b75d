package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/dynamostore"
	"github.com/hookonce/hookonce/dynamostore/internal/dynalite"
	"github.com/hookonce/hookonce/storetest"
)

var errDeclined = errors.New("card declined")

func request(key string) hookonce.ClaimRequest {
	return hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: key}, Digest: []byte("0123456789abcdef"), Lease: time.Minute}
}

// claim claims and checks the verdict.
func claim(t testing.TB, s hookonce.Store, req hookonce.ClaimRequest, want hookonce.Verdict) hookonce.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), req)
	must(t, err)
	if c.Verdict != want {
		t.Fatalf("%s: verdict is %v, want %v (claim %#v)", req.Ref, c.Verdict, want, c)
	}
	return c
}

// stored checks what is on record.
func stored(t testing.TB, s hookonce.Store, key string, state hookonce.State, token int64) hookonce.Claim {
	t.Helper()
	c, err := s.Lookup(t.Context(), request(key).Ref)
	must(t, err)
	if c.State != state || c.Token != token {
		t.Fatalf("%s is %s under token %d, want %s under %d", key, c.State, c.Token, state, token)
	}
	return c
}

// A write that was made, and whose answer was lost, is recognised by what it left: the caller is told the truth, and nothing is
// done twice.
func TestLostAnswerIsFound(t *testing.T) {
	for name, b := range map[string]func(testing.TB) backend{"fake": fake, "dynalite": func(t testing.TB) backend { return backend{url: dynalite.URL(t)} }} {
		t.Run(name, func(t *testing.T) {
			if *endpoint != "" && name == "dynalite" {
				t.Skip("it is for the stand-in")
			}
			n := &network{}
			s := b(t).open(t).store(n)
			for i, write := range []struct {
				operation string
				do        func(c hookonce.Claim) error
				state     hookonce.State
			}{
				{"UpdateItem", func(c hookonce.Claim) error { return s.Complete(t.Context(), c) }, hookonce.StateDone},
				{"UpdateItem", func(c hookonce.Claim) error { return s.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined}) }, hookonce.StateFailed},
				{"UpdateItem", func(c hookonce.Claim) error {
					_, err := s.Extend(t.Context(), c, time.Hour)
					return err
				}, hookonce.StateProcessing},
			} {
				key := string(rune('a' + i))
				n.lose(loss{operations: "PutItem", persisted: true}, loss{operations: write.operation, persisted: true})
				c := claim(t, s, request(key), hookonce.Acquired)
				if c.Token != 1 {
					t.Fatalf("claimed under token %d", c.Token)
				}
				must(t, write.do(c))
				stored(t, s, key, write.state, 1)
			}
			c := claim(t, s, request("forgotten"), hookonce.Acquired)
			n.lose(loss{operations: "DeleteItem", persisted: true})
			must(t, s.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined, Forget: true}))
			claim(t, s, request("forgotten"), hookonce.Acquired)
		})
	}
}

// A write that was not made, or after which somebody else came, is reported as unknown, and never as a refusal.
func TestLostWriteIsUnknown(t *testing.T) {
	n := &network{}
	db := fake(t).open(t)
	clock := storetest.NewClock()
	s, other := db.store(n, dynamostore.WithClock(clock.Now)), db.store(&network{}, dynamostore.WithClock(clock.Now))
	n.lose(loss{operations: "PutItem", persisted: false})
	if _, err := s.Claim(t.Context(), request("evt_1")); err == nil || errors.Is(err, hookonce.ErrBusy) || errors.Is(err, hookonce.ErrStale) {
		t.Fatalf("a claim that was lost is answered %v", err)
	}
	claim(t, other, request("evt_1"), hookonce.Acquired)

	// The failure is recorded, its answer lost, and the key is somebody else's by the time of the look.
	c := claim(t, s, request("evt_2"), hookonce.Acquired)
	n.lose(loss{operations: "UpdateItem", persisted: true})
	n.between(func() { claim(t, other, request("evt_2"), hookonce.Acquired) })
	err := s.Fail(t.Context(), c, hookonce.Failure{Err: errDeclined})
	if err == nil || errors.Is(err, hookonce.ErrStale) {
		t.Fatalf("a failure whose answer was lost is answered %v, although it was recorded", err)
	}
}

// Requests that the service turns away unread are repeated, for as long as WithWait says.
func TestThrottled(t *testing.T) {
	db := fake(t).open(t)
	o := &noise{random: rand.New(rand.NewPCG(1, 2)), throttled: 25, conflicts: 25}
	n := &network{noise: o}
	s := db.store(n, dynamostore.WithWait(time.Minute))
	for _, key := range []string{"a", "b", "c", "d"} {
		must(t, s.Complete(t.Context(), claim(t, s, request(key), hookonce.Acquired)))
		_, err := s.Within(t.Context(), request("tx-"+key), func(b *dynamostore.Batch, _ hookonce.Claim) error { return db.effect(t.Context(), b, key) })
		must(t, err)
	}
	if o.struckThrottled == 0 {
		t.Error("nothing was turned away")
	}
	o.throttled, o.conflicts = 0, 100
	hasty := db.store(n, dynamostore.WithWait(30*time.Millisecond))
	if _, err := hasty.Claim(t.Context(), request("e")); err == nil || errors.Is(err, hookonce.ErrBusy) {
		t.Errorf("a claim that was turned away for good is answered %v", err)
	}
	_, err := hasty.Within(t.Context(), request("f"), func(*dynamostore.Batch, hookonce.Claim) error { return nil })
	if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) {
		t.Errorf("a transaction that was turned away is answered %v: it is known that it was not made", err)
	}
}

// Histories and storms over a network that loses requests and answers, one sending at a time, before a service that turns
// requests away.
func TestNoise(t *testing.T) {
	noisy := func(t testing.TB) *network {
		o := &noise{random: rand.New(rand.NewPCG(rand.Uint64(), 0)), throttled: 10, conflicts: 10, lost: 3, arrived: 3}
		t.Cleanup(func() {
			if o.struckThrottled == 0 || o.struckUnknown == 0 {
				t.Errorf("%d were turned away and %d lost: too quiet", o.struckThrottled, o.struckUnknown)
			}
		})
		return &network{noise: o}
	}
	storetest.RunHistory(t, suiteOver(fake(t), noisy, dynamostore.WithWait(time.Minute)).History())
	t.Run("storm", storm)
}

// storm sends copies of events at once to stores whose networks are noisy, each until it is acknowledged.
func storm(t *testing.T) {
	const events, copies = 30, 6
	db := fake(t).open(t)
	var senders sync.WaitGroup
	for i := range copies {
		n := &network{noise: &noise{random: rand.New(rand.NewPCG(uint64(i), 7)), throttled: 5, conflicts: 10, lost: 5, arrived: 5}}
		s := db.store(n, dynamostore.WithWait(time.Minute))
		senders.Go(func() {
			for e := range events {
				for tries := 0; ; tries++ {
					key := string(rune('A' + e))
					_, err := s.Within(t.Context(), request(key), func(b *dynamostore.Batch, _ hookonce.Claim) error {
						if tries == 0 && (e+i)%5 == 0 {
							return errDeclined
						}
						return db.effect(t.Context(), b, key)
					})
					if err == nil {
						break
					}
					if tries > 1000 {
						t.Errorf("%s is never acknowledged: %v", key, err)
						return
					}
				}
			}
		})
	}
	senders.Wait()
	counts, err := db.count(t.Context(), t)
	must(t, err)
	s := db.store(&network{})
	for e := range events {
		key := string(rune('A' + e))
		if counts[key] != 1 {
			t.Errorf("%s had its effect %d times", key, counts[key])
		}
		if c, err := s.Lookup(t.Context(), request(key).Ref); err != nil || c.State != hookonce.StateDone {
			t.Errorf("%s is %s: %v", key, c.State, err)
		}
	}
}

// pay is a handler that has the effect named like the key.
func pay(db *tables, key string) func(*dynamostore.Batch, hookonce.Claim) error {
	return func(b *dynamostore.Batch, _ hookonce.Claim) error { return db.effect(context.Background(), b, key) }
}

// A transaction that was made, and whose answer was lost, is sent again as the same one.
func TestTransactionIsRepeatedAsTheSame(t *testing.T) {
	db := fake(t).open(t)
	n := &network{noise: &noise{random: rand.New(rand.NewPCG(0, 0))}}
	s := db.store(n)
	n.loseOne(loss{operations: "TransactWriteItems", persisted: true})
	c, err := s.Within(t.Context(), request("evt_1"), pay(db, "evt_1"))
	must(t, err)
	if c.Verdict != hookonce.Acquired || n.sent["TransactWriteItems"] != 2 {
		t.Fatalf("answered %v after %d sendings, want 2", c.Verdict, n.sent["TransactWriteItems"])
	}
	// An event without a key has nothing but the token.
	n.loseOne(loss{operations: "TransactWriteItems", persisted: true})
	_, err = s.Within(t.Context(), request(""), pay(db, "unkeyed"))
	must(t, err)
	effects(t, db, map[string]int{"evt_1": 1, "unkeyed": 1})
}

// The same transaction is recognised by what it left when the service has forgotten its token, after ten minutes.
func TestTransactionOutlivesItsToken(t *testing.T) {
	server := standIn(t)
	var ahead atomic.Int64
	server.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	db := backend{server.URL(), true}.open(t)
	n := &network{}
	s := db.store(n)
	n.loseOne(loss{operations: "TransactWriteItems", persisted: true})
	n.between(func() { ahead.Store(int64(11 * time.Minute)) })
	c, err := s.Within(t.Context(), request("evt_1"), pay(db, "evt_1"))
	must(t, err)
	if c.Verdict != hookonce.Acquired {
		t.Fatalf("answered %#v", c)
	}
	effects(t, db, map[string]int{"evt_1": 1})
}

// If every sending is lost, the trace settles what came of it: it finds the work done.
func TestTraceFindsTheWorkDone(t *testing.T) {
	db := fake(t).open(t)
	n := &network{}
	s := db.store(n, dynamostore.WithWait(200*time.Millisecond))
	n.lose(loss{operations: "TransactWriteItems", persisted: true})
	c, err := s.Within(t.Context(), request("evt_1"), pay(db, "evt_1"))
	must(t, err)
	if c.Verdict != hookonce.Acquired || c.State != hookonce.StateDone {
		t.Fatalf("answered %#v", c)
	}
	stored(t, s, "evt_1", hookonce.StateDone, 1)
	effects(t, db, map[string]int{"evt_1": 1})
}

// Or it keeps the transaction from ever being made, however late it arrives.
func TestTraceFencesALateTransaction(t *testing.T) {
	db := fake(t).open(t)
	n := &network{}
	s := db.store(n, dynamostore.WithWait(200*time.Millisecond))
	late := n.keep("TransactWriteItems")
	n.lose(loss{operations: "TransactWriteItems", persisted: false})
	if _, err := s.Within(t.Context(), request("evt_1"), pay(db, "evt_1")); !errors.Is(err, hookonce.ErrUnknownOutcome) || errors.Is(err, hookonce.ErrTraceLost) {
		t.Fatalf("answered %v", err)
	}
	stored(t, s, "evt_1", hookonce.StateFailed, 1)
	if status, body := late(); status != http.StatusBadRequest || !strings.Contains(body, "TransactionCanceledException") {
		t.Fatalf("the late transaction was answered %d %s", status, body)
	}
	effects(t, db, nil)
	_, err := s.Within(t.Context(), request("evt_1"), pay(db, "evt_1"))
	must(t, err)
	effects(t, db, map[string]int{"evt_1": 1})
}

// What later sendings are told says nothing about one whose answer was lost: it is never reported that the work was not done,
// for then it would be done again.
func TestRefusalAfterALostAnswerSettlesNothing(t *testing.T) {
	const reasons = `,"CancellationReasons":`
	for name, then := range map[string]func(*http.Request) (*http.Response, error){
		"nobody listens":      unreachable,
		"throttled":           refusing("ThrottlingException", ""),
		"conflict":            refusing("TransactionCanceledException", reasons+`[{"Code":"TransactionConflict"},{"Code":"None"}]`),
		"in progress":         refusing("TransactionInProgressException", ""),
		"the role has lapsed": refusing("AccessDeniedException", ""),
		"a write is refused":  refusing("TransactionCanceledException", reasons+`[{"Code":"None"},{"Code":"ConditionalCheckFailed"}]`),
		"a claim is refused":  refusing("TransactionCanceledException", reasons+`[{"Code":"ValidationError"},{"Code":"None"}]`),
	} {
		for _, made := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " made ", made), func(t *testing.T) {
				t.Parallel()
				db, n := fake(t).open(t), &network{}
				s := db.store(n, dynamostore.WithWait(100*time.Millisecond))
				lost := loss{operations: "TransactWriteItems", persisted: made, then: then}
				want := map[string]int{}
				unknown := func(key string, err error) {
					t.Helper()
					if !errors.Is(err, hookonce.ErrUnknownOutcome) {
						t.Fatalf("%q is answered %v, which says that nothing was done", key, err)
					}
					if made {
						want[key] = 1
					}
					effects(t, db, want)
				}

				b := dynamostore.NewBatch()
				_, err := s.ClaimTx(t.Context(), b, request("batch"))
				must(t, err)
				must(t, db.effect(t.Context(), b, "batch"))
				n.lose(lost)
				unknown("batch", s.Commit(t.Context(), b))

				n.lose(lost)
				n.fail(false) // nor can the trace be written
				_, err = s.Within(t.Context(), request("within"), pay(db, "within"))
				unknown("within", err)

				// With a trace it is known what came of it.
				n.lose(lost)
				_, err = s.Within(t.Context(), request("traced"), pay(db, "traced"))
				if made {
					must(t, err)
					want["traced"] = 1
				} else {
					unknown("traced", err)
					stored(t, s, "traced", hookonce.StateFailed, 1)
				}
				for _, key := range []string{"batch", "within", "traced"} {
					_, err := s.Within(t.Context(), request(key), pay(db, key))
					must(t, err)
					want[key] = 1
				}
				effects(t, db, want)
			})
		}
	}
}

// While another transaction is at work on the claim, the handler's condition may fail because of what that has written: the event is a
// duplicate then, and not one that the handler refuses.
func TestContendedClaimIsDecidedFirst(t *testing.T) {
	t.Parallel()
	db, n := fake(t).open(t), &network{}
	s, other := db.store(n), db.store(&network{})
	contended := refusing("TransactionCanceledException", `,"CancellationReasons":[{"Code":"TransactionConflict"},{"Code":"ConditionalCheckFailed"}]`)
	// strike has the next transaction meet that of the other, which is committed then.
	strike := func(key string) {
		n.loseOne(loss{operations: "TransactWriteItems", answered: true, then: func(r *http.Request) (*http.Response, error) {
			_, err := other.Within(t.Context(), request(key), func(b *dynamostore.Batch, _ hookonce.Claim) error { return db.effect(t.Context(), b, key) })
			must(t, err)
			return contended(r)
		}})
	}
	work := func(b *dynamostore.Batch, key string) error {
		b.OnRefused(func(*dynamostore.ItemError) error {
			return hookonce.Permanent(errors.New("the account does not have the money"))
		})
		return db.effect(t.Context(), b, key)
	}

	strike("within")
	c, err := s.Within(t.Context(), request("within"), func(b *dynamostore.Batch, _ hookonce.Claim) error { return work(b, "within") })
	if err != nil || c.Verdict != hookonce.Duplicate {
		t.Errorf("Within: %v, %v", c.Verdict, err)
	}
	b := dynamostore.NewBatch()
	_, err = s.ClaimTx(t.Context(), b, request("batch"))
	must(t, err)
	must(t, work(b, "batch"))
	strike("batch")
	if err := s.Commit(t.Context(), b); !errors.Is(err, hookonce.ErrBusy) || hookonce.IsPermanent(err) {
		t.Errorf("Commit: %v", err)
	}
	effects(t, db, map[string]int{"within": 1, "batch": 1})
}

// A transaction that the service has cancelled was not made, whichever of its items is the reason:
// it is an error that says which, and the next copy does the work.
func TestCancelledTransactionIsNotDone(t *testing.T) {
	for name, c := range map[string]struct{ reasons, says string }{
		"the claim":                           {`{"Code":"ValidationError","Message":"a number is wanted"},{"Code":"None"},{"Code":"None"}`, "item of the claim of billing/"},
		"the claim, and a write is contended": {`{"Code":"ValidationError"},{"Code":"None"},{"Code":"TransactionConflict"}`, "item of the claim of billing/"},
		"the guard":                           {`{"Code":"None"},{"Code":"ValidationError"},{"Code":"None"}`, "item of the guard version:"},
		"the write":                           {`{"Code":"None"},{"Code":"None"},{"Code":"ValidationError"}`, "write 0 of the batch"},
		"none that is told":                   {`{"Code":"None"},{"Code":"None"},{"Code":"None"}`, "TransactionCanceledException"},
		"none that is known":                  {`{},{},{}`, "TransactionCanceledException"},
		"fewer reasons than items":            {`{"Code":"ValidationError"}`, "1 reasons for 3 items"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, n := fake(t).open(t), &network{}
			s := db.store(n, dynamostore.WithWait(50*time.Millisecond))
			cancelled := loss{
				operations: "TransactWriteItems", answered: true,
				then: refusing("TransactionCanceledException", `,"CancellationReasons":[`+c.reasons+`]`),
			}
			work := func(b *dynamostore.Batch, key string) error {
				if _, err := s.Newer(t.Context(), b, key, hookonce.Version(1)); err != nil {
					return err
				}
				return db.effect(t.Context(), b, key)
			}
			refused := func(key string, err error) {
				t.Helper()
				if err == nil || errors.Is(err, hookonce.ErrUnknownOutcome) || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("%q is answered %v, want that nothing was done because of %q", key, err, c.says)
				}
				effects(t, db, nil)
			}

			b := dynamostore.NewBatch()
			_, err := s.ClaimTx(t.Context(), b, request("batch"))
			must(t, err)
			must(t, work(b, "batch"))
			n.lose(cancelled)
			refused("batch", s.Commit(t.Context(), b))

			n.lose(cancelled)
			_, err = s.Within(t.Context(), request("within"), func(b *dynamostore.Batch, _ hookonce.Claim) error { return work(b, "within") })
			refused("within", err)
			stored(t, s, "within", hookonce.StateFailed, 1)

			for _, key := range []string{"batch", "within"} {
				_, err := s.Within(t.Context(), request(key), func(b *dynamostore.Batch, _ hookonce.Claim) error { return work(b, key) })
				must(t, err)
			}
			effects(t, db, map[string]int{"batch": 1, "within": 1})
		})
	}
}

func effects(t testing.TB, db *tables, want map[string]int) {
	t.Helper()
	got, err := db.count(t.Context(), t)
	must(t, err)
	if len(got) != len(want) {
		t.Fatalf("effects are %v, want %v", got, want)
	}
	for key, n := range want {
		if got[key] != n {
			t.Fatalf("effects are %v, want %v", got, want)
		}
	}
}
