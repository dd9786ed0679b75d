package dynamostore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/hookonce/hookonce"
)

// newAttempt names a write. Every write of an item leaves its name there, which is good for two things: whoever wants to
// change what it has seen asks that the name is still the same, and whoever lost the answer to its write finds its own name.
// It is also the token by which the service recognises a transaction that is sent again.
func newAttempt() string { return rand.Text() }

// condition is what must hold for a write to be made.
type condition struct {
	text   string
	values item // by the names in the text
}

var absent = condition{text: "attribute_not_exists(" + attrKey + ")"}

// unchanged is that the item is still what the write with that name made it.
func unchanged(attempt string) condition {
	return condition{attrAttempt + " = :seen", item{":seen": text(attempt)}}
}

// standing is unchanged for what was read; nil: nothing was there.
func standing(r *record) condition {
	if r == nil {
		return absent
	}
	return unchanged(r.attempt)
}

// refused says that the condition of a write did not hold. The item is what the condition was judged by, or nil: there was
// none, or the service does not tell.
type refused struct{ item item }

// Error implements error.
func (*refused) Error() string { return "dynamostore: the condition of a write did not hold" }

// errUnknown says that it is not known whether a write was made.
var errUnknown = errors.New("it is not known whether the write was made")

// errUnsent says that a request was never sent.
var errUnsent = errors.New("nothing was sent")

// put stores an item if the condition holds.
func (s *Store) put(ctx context.Context, i item, c condition) error {
	_, err := s.write(ctx, i, func(ctx context.Context) (item, error) {
		_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &s.table, Item: i, ConditionExpression: &c.text, ExpressionAttributeValues: c.values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, once)
		return i, err
	})
	return err
}

// update changes an item if the condition holds, and returns it as it is then. The change sets attrAttempt.
func (s *Store) update(ctx context.Context, key, attempt, change string, values item, c condition) (item, error) {
	all := item{":attempt": text(attempt)}
	for _, more := range []item{values, c.values} {
		for name, v := range more {
			all[name] = v
		}
	}
	change = "SET " + attrAttempt + " = :attempt, " + change
	return s.write(ctx, item{attrKey: text(key), attrAttempt: text(attempt)}, func(ctx context.Context) (item, error) {
		out, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.table, Key: item{attrKey: text(key)}, UpdateExpression: &change, ConditionExpression: &c.text,
			ExpressionAttributeValues: all, ReturnValues: types.ReturnValueAllNew,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, once)
		if err != nil {
			return nil, err
		}
		return out.Attributes, nil
	})
}

// delete deletes an item if the condition holds.
func (s *Store) delete(ctx context.Context, key string, c condition) error {
	_, err := s.write(ctx, item{attrKey: text(key)}, func(ctx context.Context) (item, error) {
		_, err := s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &s.table, Key: item{attrKey: text(key)}, ConditionExpression: &c.text, ExpressionAttributeValues: c.values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, once)
		return nil, err
	})
	return err
}

// once has the client send a request a single time. Were it repeated after its answer was lost, it would meet what it did
// itself, or what somebody did since, and be told so as if it had done nothing.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// write makes one write and returns what try returned. It repeats what the service turned away unread. Where the answer was
// lost it looks for the write's own name in the item: an item without one is deleted. Errors: *[refused], with the item as it
// was; and one that wraps errUnknown.
func (s *Store) write(ctx context.Context, own item, try func(context.Context) (item, error)) (item, error) {
	var now item
	err := s.patiently(ctx, func() (err error) {
		now, err = try(ctx)
		return err
	})
	switch classify(err) {
	case done:
		return now, nil
	case refusal:
		return nil, s.seen(ctx, own, err)
	case unknown:
		return s.settled(ctx, own, err)
	}
	return nil, explain(err)
}

// seen returns the refusal with the item. A service that does not tell is asked, and then it is what holds a moment later.
func (s *Store) seen(ctx context.Context, own item, err error) error {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) && failed.Item != nil {
		return &refused{failed.Item}
	}
	rd := reader{item: own}
	i, err := s.get(ctx, rd.text(attrKey))
	if err != nil {
		return err
	}
	return &refused{i}
}

// settled finds out whether a write was made whose answer was lost.
func (s *Store) settled(ctx context.Context, own item, lost error) (item, error) {
	mine := reader{item: own}
	i, err := s.get(ctx, mine.text(attrKey))
	there := reader{item: i}
	attempt := mine.text(attrAttempt)
	switch {
	case err == nil && attempt != "" && there.text(attrAttempt) == attempt:
		return i, nil
	case err == nil && attempt == "" && i == nil:
		return nil, nil
	}
	return nil, fmt.Errorf("%w: %w", errUnknown, lost)
}

// patiently calls try until it was not turned away, or the store's wait is over.
func (s *Store) patiently(ctx context.Context, try func() error) error {
	return s.repeatedly(ctx, try, turnedAway)
}

// repeatedly calls try until what it says is none of again, or the store's wait is over.
func (s *Store) repeatedly(ctx context.Context, try func() error, again ...answer) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errUnsent, context.Cause(ctx))
	}
	const first, most = 20 * time.Millisecond, 500 * time.Millisecond
	deadline := time.Now().Add(s.wait)
	for bound := first; ; bound = min(2*bound, most) {
		err := try()
		if !slices.Contains(again, classify(err)) {
			return err
		}
		pause := time.Duration(mathrand.Int64N(int64(bound))) + time.Millisecond
		if time.Now().Add(pause).After(deadline) {
			return fmt.Errorf("%w (tried for %v: see WithWait)", err, s.wait)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
	}
}

// answer is what an error of a write says about whether it was made.
type answer int

const (
	done       answer = iota
	refusal           // its condition did not hold: not made
	turnedAway        // not made, and may be tried again
	mistaken          // not made, and trying again would not help
	unknown           // nobody knows
)

// turnedAwayCodes are the errors by which the service says that it has done nothing and may be asked again.
var turnedAwayCodes = []string{
	"ProvisionedThroughputExceededException", "ThrottlingException", "ThrottlingError", "ProvisionedThroughputExceeded",
	"RequestLimitExceeded", "LimitExceededException",
	"TransactionConflictException", "TransactionConflict", // a transaction is under way on the item
	"ReplicatedWriteConflictException", // as the one before, in another region of a strongly consistent global table
}

// classify says what an error says. An answer with a status of 4xx says that nothing was done; 5xx and no answer say nothing.
func classify(err error) answer {
	var refusedNow *types.ConditionalCheckFailedException
	var cancelled *types.TransactionCanceledException
	var api smithy.APIError
	var response *smithyhttp.ResponseError
	var dial *net.OpError
	switch {
	case err == nil:
		return done
	case errors.Is(err, errUnsent):
		return mistaken
	case errors.As(err, new(*contendedClaim)):
		return turnedAway
	case errors.As(err, &refusedNow):
		return refusal
	case errors.As(err, &cancelled):
		return classifyReasons(cancelled.CancellationReasons)
	case errors.As(err, &dial) && dial.Op == "dial": // it was never sent
		return turnedAway
	case errors.As(err, &api) && api.ErrorCode() == "TransactionInProgressException":
		return unknown
	case errors.As(err, &api) && slices.Contains(turnedAwayCodes, api.ErrorCode()):
		return turnedAway
	case errors.As(err, &response) && response.HTTPStatusCode() >= 400 && response.HTTPStatusCode() < 500:
		return mistaken
	}
	return unknown
}

// codeCondition is the code of a reason that is a condition which did not hold.
const codeCondition = "ConditionalCheckFailed"

// classifyReasons says what the reasons for which a transaction was cancelled say. All of it was undone.
func classifyReasons(reasons []types.CancellationReason) answer {
	all := turnedAway
	for _, r := range reasons {
		switch {
		case aws.ToString(r.Code) == codeCondition:
			return refusal
		case stands(r):
			all = mistaken
		}
	}
	return all
}

// contendedClaim is the error of a transaction that was cancelled while another one is at work on a claim of its own, also
// because a condition of the rest does not hold. That may be what the other transaction has just written, so that the claim is
// decided first.
type contendedClaim struct{ error }

func (c *contendedClaim) Unwrap() error { return c.error }

// contended returns err as the error of a contended claim, if it is one. The first reasons are those of that many claims.
func contended(err error, claims int) error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) < claims {
		return err
	}
	own, rest := cancelled.CancellationReasons[:claims], cancelled.CancellationReasons[claims:]
	busy := func(r types.CancellationReason) bool { return slices.Contains(turnedAwayCodes, aws.ToString(r.Code)) }
	failed := func(r types.CancellationReason) bool { return aws.ToString(r.Code) == codeCondition }
	if !slices.ContainsFunc(own, stands) && slices.ContainsFunc(own, busy) && slices.ContainsFunc(rest, failed) {
		return &contendedClaim{err}
	}
	return err
}

// stands reports whether a reason stands against the transaction, and not against this sending of
// it alone. Items that were no obstacle have one too, which says so.
func stands(r types.CancellationReason) bool {
	code := aws.ToString(r.Code)
	return code != "" && code != "None" && !slices.Contains(turnedAwayCodes, code)
}

// explain returns an error of the service that says what to do, where that can be known. It is for requests that are about
// the store's own table alone.
func explain(err error) error {
	switch {
	case missing(err):
		return fmt.Errorf("%w: there is no such table (or its key is another one): make it as docs/dynamodb.md says, or with CreateTable: %w", hookonce.ErrSchemaMissing, err)
	case denied(err):
		return fmt.Errorf("the role lacks a right that docs/dynamodb.md lists: %w", err)
	}
	return err
}

// missing reports whether the service says that a table is not there.
func missing(err error) bool {
	var gone *types.ResourceNotFoundException
	return errors.As(err, &gone)
}

// denied reports whether the role may not ask for it.
func denied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "AccessDeniedException"
}
