package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hookonce/hookonce"
)

// guard is the record of a resource or an entity as a batch knows it. What it was read as must still hold at the commit,
// also if nothing is changed: the handler goes by what it was told.
type guard struct {
	key  string
	seen condition
	now  item // as the transaction sees it; nil: none
	next item // to be stored; nil: nothing is
}

// write is the guard's part of the transaction.
func (g *guard) write(table, attempt string) types.TransactWriteItem {
	show := types.ReturnValuesOnConditionCheckFailureAllOld
	if g.next == nil {
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &table, Key: item{attrKey: text(g.key)}, ConditionExpression: &g.seen.text,
			ExpressionAttributeValues: g.seen.values, ReturnValuesOnConditionCheckFailure: show,
		}}
	}
	g.next[attrAttempt] = text(attempt)
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &table, Item: g.next, ConditionExpression: &g.seen.text,
		ExpressionAttributeValues: g.seen.values, ReturnValuesOnConditionCheckFailure: show,
	}}
}

// guard returns the batch's record under key, which it reads when it is asked for first. The batch is locked.
func (s *Store) guard(ctx context.Context, b *Batch, key string) (*guard, error) {
	if err := b.usable(ctx); err != nil {
		return nil, err
	}
	for _, g := range b.guards {
		if g.key == key {
			return g, nil
		}
	}
	i, err := s.get(ctx, key)
	if err != nil {
		return nil, err
	}
	g := &guard{key: key, seen: absent, now: i}
	if i != nil {
		rd := reader{item: i}
		g.seen = unchanged(rd.text(attrAttempt))
	}
	if err := b.room(sizeOf(i)); err != nil {
		return nil, err
	}
	b.guards = append(b.guards, g)
	return g, nil
}

// record has the guard store what is given.
func (g *guard) record(now time.Time, values item) {
	values[attrKey], values[attrUpdated] = text(g.key), micros(now)
	g.now, g.next = values, values
}

// Newer implements [hookonce.Guards]. It reads the newest rank, strongly consistent. If another transaction records one before
// this one commits, the commit fails, and nothing is written. It must not be called by several goroutines at once.
func (s *Store) Newer(ctx context.Context, b *Batch, resource string, rank hookonce.Rank) (bool, error) {
	if rank.IsZero() {
		return true, nil
	}
	if err := hookonce.ValidateResource(resource, rank); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	g, err := s.guard(ctx, b, versionPrefix+resource)
	if err != nil {
		return false, fmt.Errorf("dynamostore: the version of %s: %w", resource, err)
	}
	rd := reader{item: g.now}
	newest := hookonce.Rank{Kind: hookonce.RankKind(rd.text(attrKind)), N: rd.number(attrRank)}
	if rd.err != nil {
		return false, fmt.Errorf("dynamostore: the version of %s: %w", resource, rd.err)
	}
	if g.now != nil && !rank.Supersedes(newest) {
		return false, nil
	}
	g.record(s.now(), item{attrKind: text(string(rank.Kind)), attrRank: number(rank.N)})
	return true, nil
}

// Transition implements [hookonce.Guards]; see [Store.Newer] for what happens at once.
func (s *Store) Transition(ctx context.Context, b *Batch, entity, from, to string) (string, hookonce.Move, error) {
	if err := hookonce.ValidateTransition(entity, from, to); err != nil {
		return "", "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	g, err := s.guard(ctx, b, statePrefix+entity)
	if err != nil {
		return "", "", fmt.Errorf("dynamostore: the state of %s: %w", entity, err)
	}
	rd := reader{item: g.now}
	state := rd.text(attrPlace)
	if rd.err != nil {
		return "", "", fmt.Errorf("dynamostore: the state of %s: %w", entity, rd.err)
	}
	made := state == from
	if made {
		state = to
		g.record(s.now(), item{attrPlace: text(to)})
	}
	return state, hookonce.MoveOf(made, state, to), nil
}
