package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hookonce/hookonce"
)

// Batch collects what a handler writes. Nothing of it is sent before the handler has returned; then all of it is made in one
// transaction together with the claim, or nothing is.
//
// It holds no reads, because DynamoDB has no transaction that goes on. What a handler has read by itself may have changed by
// the time of the commit: what it relies on goes into a condition of the write, or into a ConditionCheck of its own.
//
// The items of a batch are those of one region, each of them there once, with the claim and the guards at most [MaxItems]
// of together at most [MaxTransaction] bytes. Collecting is safe for concurrent use.
type Batch struct {
	mu       sync.Mutex
	attempt  string
	claims   []*staged
	own      *staged // the claim that Within made; nil: there is none
	guards   []*guard
	writes   []types.TransactWriteItem // the handler's
	size     int
	err      error // the first thing that was refused
	ended    bool
	explains func(*ItemError) error
}

// staged is a claim that becomes visible with the commit.
type staged struct {
	req  hookonce.ClaimRequest
	seen *record // what it was decided by; nil: nothing was there
	next *record
}

// NewBatch returns an empty batch, for [Store.ClaimTx] and [Store.Commit]. One that is not committed does nothing.
func NewBatch() *Batch { return &Batch{attempt: newAttempt()} }

// errEnded says that a batch was used when it was too late.
var errEnded = errors.New("dynamostore: the batch was sent, or its handler has returned: what is added now would not be a part of the transaction")

// Put adds a PutItem. Without ReturnValuesOnConditionCheckFailure an [ItemError] shows the item that was there. Errors: the
// batch has no room for it, or has ended; then Within, or Commit, fails with the same error.
func (b *Batch) Put(p types.Put) error {
	n := sizeOf(p.Item)
	if n > MaxItem {
		return b.refuse(fmt.Errorf("dynamostore: an item for %s has %d bytes, more than the %d that DynamoDB takes", aws.ToString(p.TableName), n, MaxItem))
	}
	shows(&p.ReturnValuesOnConditionCheckFailure)
	return b.add(types.TransactWriteItem{Put: &p}, n)
}

// Update adds an UpdateItem; see [Batch.Put]. Of its size only the key and the values are known.
func (b *Batch) Update(u types.Update) error {
	shows(&u.ReturnValuesOnConditionCheckFailure)
	return b.add(types.TransactWriteItem{Update: &u}, sizeOf(u.Key)+sizeOf(u.ExpressionAttributeValues))
}

// Delete adds a DeleteItem; see [Batch.Put].
func (b *Batch) Delete(d types.Delete) error {
	shows(&d.ReturnValuesOnConditionCheckFailure)
	return b.add(types.TransactWriteItem{Delete: &d}, sizeOf(d.Key))
}

// ConditionCheck adds a condition on an item that the batch does not write; see [Batch.Put]. It guards what the handler has
// read, and costs as much as a write.
func (b *Batch) ConditionCheck(c types.ConditionCheck) error {
	shows(&c.ReturnValuesOnConditionCheckFailure)
	return b.add(types.TransactWriteItem{ConditionCheck: &c}, sizeOf(c.Key))
}

// OnRefused sets what the refusal of one of the handler's writes means. The transaction is decided after the handler has
// returned, so the handler says beforehand: explain gets the refusal, and its error is what comes of the attempt, marked with
// [hookonce.Permanent] for example if the money is not there. Without it, or if it returns nil, that is the [ItemError], which
// is answered 503 and sent again.
func (b *Batch) OnRefused(explain func(*ItemError) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.explains = explain
	}
}

// Len returns how many items the transaction is about by now.
func (b *Batch) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.len()
}

func (b *Batch) len() int { return len(b.claims) + len(b.guards) + len(b.writes) }

// tables returns the names of the tables that the handler's writes are about.
func (b *Batch) tables() (names []string) {
	for _, w := range b.writes {
		switch {
		case w.Put != nil:
			names = append(names, aws.ToString(w.Put.TableName))
		case w.Update != nil:
			names = append(names, aws.ToString(w.Update.TableName))
		case w.Delete != nil:
			names = append(names, aws.ToString(w.Delete.TableName))
		case w.ConditionCheck != nil:
			names = append(names, aws.ToString(w.ConditionCheck.TableName))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// shows has a failed condition show the item.
func shows(r *types.ReturnValuesOnConditionCheckFailure) {
	if *r == "" {
		*r = types.ReturnValuesOnConditionCheckFailureAllOld
	}
}

func (b *Batch) add(w types.TransactWriteItem, size int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.room(size)
	if err == nil {
		b.writes = append(b.writes, w)
	}
	return err
}

// refuse has the batch fail.
func (b *Batch) refuse(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fail(err)
}

func (b *Batch) fail(err error) error {
	if b.err == nil {
		b.err = err
	}
	return err
}

// room takes the room of one more item of that size. The batch is locked.
func (b *Batch) room(size int) error {
	switch {
	case b.ended:
		return errEnded
	case b.len() >= MaxItems:
		return b.fail(fmt.Errorf("dynamostore: the batch has %d items with the claim, and DynamoDB takes no more in one transaction", MaxItems))
	case b.size+size > MaxTransaction:
		return b.fail(fmt.Errorf("dynamostore: the batch has %d bytes, more than the %d that DynamoDB takes in one transaction", b.size+size, MaxTransaction))
	}
	b.size += size
	return nil
}

// usable returns an error if nothing can be added any more. The batch is locked.
func (b *Batch) usable(ctx context.Context) error {
	if b.ended {
		return errEnded
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// end lets nothing more in.
func (b *Batch) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// claimed returns the batch's own claim of ref; nil: there is none. The batch is locked.
func (b *Batch) claimed(ref hookonce.Ref) *staged {
	for _, c := range b.claims {
		if c.req.Ref == ref {
			return c
		}
	}
	return nil
}

// ItemError says that one of a handler's writes kept the transaction from being made.
type ItemError struct {
	// Index is which of the handler's writes it is, from 0, in the order in which they were added.
	Index int
	// Code is DynamoDB's, such as ConditionalCheckFailed or ValidationError, and Message what it says besides.
	Code, Message string
	// Item is what was there, if there was an item and it was asked for.
	Item map[string]types.AttributeValue
}

// Error implements error.
func (e *ItemError) Error() string {
	return fmt.Sprintf("dynamostore: write %d of the batch: %s: %s", e.Index, e.Code, e.Message)
}
