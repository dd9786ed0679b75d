package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/hookonce/hookonce"
)

// Purge implements [hookonce.Store]. Nobody needs to call it for claims that expire by themselves (see [WithRetention]): it is
// for what never expires, such as work that failed. There is no index by age, which would double what every claim costs, so
// Purge reads the whole table, from the beginning each time, and pays for all that it reads: a large limit costs less than
// a small one. Each item is deleted by itself, if it is still what was read. Beside an error n counts those that are known to be
// deleted.
func (s *Store) Purge(ctx context.Context, req hookonce.PurgeRequest) (n int, err error) {
	if err := req.Validate(s.now()); err != nil {
		return 0, err
	}
	if req.Kind == hookonce.PurgeEffects {
		return 0, ctx.Err() // none is ever kept here
	}
	p := purge{PurgeRequest: req}
	p.from, p.to = req.Span()
	in := &dynamodb.ScanInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true),
		ProjectionExpression: aws.String(strings.Join([]string{attrKey, attrState, attrUpdated, attrAttempt}, ", ")),
	}
	for n < req.Limit {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		out, err := s.client.Scan(ctx, in)
		if err != nil {
			return n, fmt.Errorf("dynamostore: purge: %w", explain(err))
		}
		for _, i := range out.Items {
			deleted, err := s.purgeOne(ctx, p, i, n < req.Limit)
			if n += deleted; err != nil {
				return n, fmt.Errorf("dynamostore: purge: %w", err)
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			break
		}
	}
	return n, nil
}

// purge is one call of Purge.
type purge struct {
	hookonce.PurgeRequest
	from, to time.Time
}

// purgeOne deletes an item if it may go and there is room in the limit, and returns how many it deleted.
func (s *Store) purgeOne(ctx context.Context, p purge, i item, room bool) (int, error) {
	rd := reader{item: i}
	attempt := rd.text(attrAttempt)
	if !room || attempt == "" || !p.may(&rd) || rd.err != nil {
		return 0, nil
	}
	if p.Dry {
		return 1, nil
	}
	err := s.delete(ctx, rd.text(attrKey), unchanged(attempt))
	var no *refused
	switch {
	case errors.As(err, &no):
		return 0, nil // somebody has it again, or was faster
	case err != nil:
		return 0, err
	}
	return 1, nil
}

// may reports whether the request is about the item.
func (p purge) may(rd *reader) bool {
	if !p.kindOf(rd) {
		return false
	}
	updated := rd.time(attrUpdated)
	return rd.err == nil && !updated.Before(p.from) && updated.Before(p.to)
}

// kindOf reports whether the item is one of those that the request is about, however old it is.
func (p purge) kindOf(rd *reader) bool {
	key := rd.text(attrKey)
	switch p.Kind {
	case hookonce.PurgeVersions:
		return strings.HasPrefix(key, versionPrefix)
	case hookonce.PurgeStates:
		return strings.HasPrefix(key, statePrefix)
	}
	ref, isClaim := refOf(key)
	return isClaim && p.Covers(ref.Source) && p.Over(hookonce.State(rd.text(attrState)))
}
