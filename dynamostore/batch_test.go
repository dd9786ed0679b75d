package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/dynamostore"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/provider"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int) types.AttributeValue  { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }

// within runs a handler for a key of its own.
func within(t testing.TB, s *dynamostore.Store, fn func(b *dynamostore.Batch) error) (hookonce.Claim, error) {
	t.Helper()
	return s.Within(t.Context(), request(fmt.Sprint("evt_", cases.Add(1))), func(b *dynamostore.Batch, _ hookonce.Claim) error { return fn(b) })
}

func put(db *tables, key string, size int) types.Put {
	return types.Put{TableName: &db.effects, Item: item{"pk": text(key), "x": text(strings.Repeat("x", size))}}
}

// What DynamoDB would refuse is refused where it is added, by the handler's own error or, if that is overlooked, by the commit;
// and nothing is sent.
func TestBatchLimits(t *testing.T) {
	db := fake(t).open(t)
	n := &network{}
	s := db.store(n)
	for name, c := range map[string]struct {
		add  func(b *dynamostore.Batch) error
		says string
	}{
		"items": {func(b *dynamostore.Batch) (err error) {
			for i := range dynamostore.MaxItems {
				err = errors.Join(err, b.Put(put(db, fmt.Sprint(i), 1)))
			}
			return err
		}, "100 items"},
		"an item": {func(b *dynamostore.Batch) error { return b.Put(put(db, "large", dynamostore.MaxItem)) }, "409600"},
		"the transaction": {func(b *dynamostore.Batch) (err error) {
			for i := range 11 {
				err = errors.Join(err, b.Put(put(db, fmt.Sprint(i), dynamostore.MaxItem-1000)))
			}
			return err
		}, "4194304"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, heeded := range []bool{true, false} {
				_, err := within(t, s, func(b *dynamostore.Batch) error {
					if err := c.add(b); heeded || err == nil {
						return err
					}
					return nil
				})
				if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, hookonce.ErrUnknownOutcome) {
					t.Errorf("answered %v, want an error that says %q", err, c.says)
				}
			}
		})
	}
	if n.sent["TransactWriteItems"] != 0 {
		t.Errorf("%d transactions were sent", n.sent["TransactWriteItems"])
	}
	_, err := within(t, s, func(b *dynamostore.Batch) (err error) {
		for i := range dynamostore.MaxItems - 1 {
			err = errors.Join(err, b.Put(put(db, fmt.Sprint("fits-", i), 1)))
		}
		if b.Len() != dynamostore.MaxItems {
			t.Errorf("the batch has %d items", b.Len())
		}
		return err
	})
	must(t, err)
}

// What is added after the handler has returned is refused, and not lost unseen.
func TestBatchEnds(t *testing.T) {
	db := fake(t).open(t)
	s := db.store(&network{})
	var kept *dynamostore.Batch
	_, err := within(t, s, func(b *dynamostore.Batch) error { kept = b; return nil })
	must(t, err)
	if kept.Put(put(db, "late", 1)) == nil || kept.Delete(types.Delete{TableName: &db.effects, Key: item{"pk": text("x")}}) == nil {
		t.Error("something was added after the end")
	}
	if s.Commit(t.Context(), kept) == nil {
		t.Error("it was committed twice")
	}
	effects(t, db, nil)
}

// What was never sent is not called unknown.
func TestNothingSentIsNotUnknown(t *testing.T) {
	db := fake(t).open(t)
	n := &network{}
	s := db.store(n)
	b := dynamostore.NewBatch()
	_, err := s.ClaimTx(t.Context(), b, request("evt_1"))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Commit(ctx, b); !errors.Is(err, context.Canceled) || errors.Is(err, hookonce.ErrUnknownOutcome) {
		t.Errorf("answered %v", err)
	}
	if n.sent["TransactWriteItems"] != 0 {
		t.Error("it was sent")
	}
}

// A condition of the handler's own that fails undoes all, says which write it was and what was there, and means what the handler
// said before.
func TestItemError(t *testing.T) {
	db := fake(t).open(t)
	s := db.store(&network{})
	debit := types.Update{
		TableName: &db.effects, Key: item{"pk": text("account")}, UpdateExpression: aws.String("SET n = n - :amount"),
		ConditionExpression: aws.String("n >= :amount"), ExpressionAttributeValues: item{":amount": number(5)},
	}
	_, err := within(t, s, func(b *dynamostore.Batch) error {
		return b.Put(types.Put{TableName: &db.effects, Item: item{"pk": text("account"), "n": number(3)}})
	})
	must(t, err)
	var refused *dynamostore.ItemError
	_, err = within(t, s, func(b *dynamostore.Batch) error {
		return errors.Join(db.effect(t.Context(), b, "order"), b.Update(debit))
	})
	if !errors.As(err, &refused) || refused.Index != 1 || refused.Code != "ConditionalCheckFailed" {
		t.Fatalf("answered %v", err)
	}
	if n, ok := refused.Item["n"].(*types.AttributeValueMemberN); !ok || n.Value != "3" {
		t.Errorf("it shows %v", refused.Item)
	}
	req := request("gives up")
	_, err = s.Within(t.Context(), req, func(b *dynamostore.Batch, _ hookonce.Claim) error {
		b.OnRefused(func(e *dynamostore.ItemError) error { return hookonce.Permanent(errDeclined) })
		return b.Update(debit)
	})
	if !errors.Is(err, errDeclined) || !hookonce.IsPermanent(err) {
		t.Fatalf("answered %v", err)
	}
	stored(t, s, "gives up", hookonce.StateDead, 1)
	effects(t, db, map[string]int{"account": 3})
}

// A ConditionCheck guards what the handler has read: if that changed, nothing is written.
func TestConditionCheckGuardsAReading(t *testing.T) {
	db := fake(t).open(t)
	s := db.store(&network{})
	rate := item{"pk": text("rate")}
	set := func(n int) {
		_, err := db.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &db.effects, Item: item{"pk": text("rate"), "n": number(n)}})
		must(t, err)
	}
	set(2)
	_, err := within(t, s, func(b *dynamostore.Batch) error {
		read, err := db.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &db.effects, Key: rate, ConsistentRead: aws.Bool(true)})
		must(t, err)
		set(3)
		return errors.Join(
			b.ConditionCheck(types.ConditionCheck{TableName: &db.effects, Key: rate, ConditionExpression: aws.String("n = :n"), ExpressionAttributeValues: item{":n": read.Item["n"]}}),
			db.effect(t.Context(), b, "priced"))
	})
	var refused *dynamostore.ItemError
	if !errors.As(err, &refused) || refused.Index != 0 {
		t.Fatalf("answered %v", err)
	}
	effects(t, db, map[string]int{"rate": 3})
}

// Webhook works with it: a storm of copies over two processes, with handlers that fail, leaves one effect of each event.
func TestWebhook(t *testing.T) {
	db := fake(t).open(t)
	stripe := provider.Stripe("whsec_obviously_fake")
	var doors [2]http.Handler
	for i := range doors {
		doors[i] = hookonce.Webhook(db.store(&network{}), "stripe", stripe, func(ctx context.Context, b *dynamostore.Batch, ev *hookonce.Event) error {
			return errors.Join(db.effect(ctx, b, ev.Key), hookoncetest.Fail(ctx))
		}, hookonce.WithLogger(slog.New(slog.DiscardHandler)))
	}
	storm := hookoncetest.Storm(t, between(doors), stripe)
	counts, err := db.count(t.Context(), t)
	must(t, err)
	storm.Once(t, func(key string) int { return counts[key] })
}

// between sends requests to two handlers in turn.
func between(doors [2]http.Handler) http.Handler {
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { doors[n.Add(1)%2].ServeHTTP(w, r) })
}

// Idempotent works with it: every copy of a request gets the first one's answer, in two processes at once.
func TestIdempotent(t *testing.T) {
	db := fake(t).open(t)
	var mu sync.Mutex
	runs := 0
	var doors []http.Handler
	for range 2 {
		doors = append(doors, hookonce.Idempotent(db.store(&network{}), "orders", func(w http.ResponseWriter, r *http.Request, b *dynamostore.Batch) error {
			mu.Lock()
			runs++
			fmt.Fprintf(w, "order %d", runs)
			mu.Unlock()
			return db.effect(r.Context(), b, "order")
		}, hookonce.WithoutScope(), hookonce.WithMaxResponse(dynamostore.MaxResponse), hookonce.WithWait(10*time.Second), hookonce.WithLogger(slog.New(slog.DiscardHandler))))
	}
	var senders sync.WaitGroup
	answers := make([]string, 20)
	for i := range answers {
		senders.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("one book"))
			r.Header.Set("Idempotency-Key", "k1")
			w := httptest.NewRecorder()
			doors[i%2].ServeHTTP(w, r)
			body, _ := io.ReadAll(w.Body)
			answers[i] = fmt.Sprint(w.Code, " ", string(body))
		})
	}
	senders.Wait()
	for _, a := range answers {
		if a != answers[0] || !strings.HasPrefix(a, "200 order ") {
			t.Errorf("answers are %q", answers)
			break
		}
	}
	effects(t, db, map[string]int{"order": 1})
}
