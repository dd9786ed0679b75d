package dynamostore

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/hookonce/hookonce"
)

const (
	// DefaultTable is the name of the table.
	DefaultTable = "hookonce"
	// DefaultRetention is how long done claims are kept: twice and more what any provider of the catalogue goes on
	// redelivering.
	DefaultRetention = 90 * 24 * time.Hour
	// DefaultWait is how long a call goes on trying where the service turns it away unread.
	DefaultWait = 3 * time.Second
)

// Store keeps claims in a table of DynamoDB. It is safe for concurrent use, and any number of stores in any number of
// processes may share a table.
type Store struct {
	client    *dynamodb.Client
	table     string
	clock     func() time.Time
	wait      time.Duration
	retention time.Duration
	retained  map[string]time.Duration // by source, where it is another one
}

var (
	_ hookonce.TxResponseStore[*Batch] = (*Store)(nil)
	_ hookonce.Guards[*Batch]          = (*Store)(nil)
)

// Option changes a Store when it is made.
type Option func(*Store)

// WithClock makes the store take its time from clock. The default is [time.Now]. Leases, the times that claims show, and
// when a done claim may be deleted go by it; DynamoDB's own clock only decides when the last of these has come. Times are
// kept in microseconds.
func WithClock(clock func() time.Time) Option { return func(s *Store) { s.clock = clock } }

// WithTable sets the table's name. The default is [DefaultTable]. Programs that must not see each other's claims need
// different tables.
func WithTable(name string) Option { return func(s *Store) { s.table = name } }

// WithWait sets how long a call goes on trying while the service turns it away without having done anything: because it
// throttles, or because a transaction is under way on the same item. After that it fails, and the caller answers 503. The
// default is [DefaultWait].
func WithWait(d time.Duration) Option { return func(s *Store) { s.wait = d } }

// WithRetention sets how long a claim that is done is kept, from the moment when it was done. The default is
// [DefaultRetention]; zero keeps claims until [Store.Purge] deletes them. It must be at least twice the longest window in
// which the provider redelivers. DynamoDB deletes later than that, by days sometimes, which is on the safe side. Claims that
// are not done never expire.
func WithRetention(d time.Duration) Option { return func(s *Store) { s.retention = d } }

// WithSourceRetention is [WithRetention] for one source. Keys of [hookonce.Once], whose sources begin with "once:", are
// kept for ever unless this says otherwise.
func WithSourceRetention(source string, d time.Duration) Option {
	return func(s *Store) {
		s.retained = maps.Clone(s.retained)
		if s.retained == nil {
			s.retained = map[string]time.Duration{}
		}
		s.retained[source] = d
	}
}

// New returns a store on client. It does not connect; see [Store.Check] and [Store.Inspect]. How often the client's own
// retryer repeats a request does not matter to what is answered: see the package's comment. New panics if an option makes no
// sense.
func New(client *dynamodb.Client, opts ...Option) *Store {
	s := &Store{client: client, table: DefaultTable, clock: time.Now, wait: DefaultWait, retention: DefaultRetention}
	for _, o := range opts {
		o(s)
	}
	if err := s.validate(); err != nil {
		panic(err)
	}
	return s
}

func (s *Store) validate() error {
	switch {
	case s.client == nil || s.clock == nil:
		return fmt.Errorf("dynamostore: New needs a client and a clock")
	case s.table == "":
		return fmt.Errorf("dynamostore: WithTable: the name is empty")
	case s.wait <= 0:
		return fmt.Errorf("dynamostore: WithWait(%v): the time must be positive", s.wait)
	case !validRetention(s.retention):
		return fmt.Errorf("dynamostore: WithRetention(%v): the period must be 0, or at least a second", s.retention)
	}
	for source, d := range s.retained {
		if !validRetention(d) {
			return fmt.Errorf("dynamostore: WithSourceRetention(%q, %v): the period must be 0, or at least a second", source, d)
		}
	}
	return nil
}

// validRetention: DynamoDB counts the time to live in seconds.
func validRetention(d time.Duration) bool { return d == 0 || d >= time.Second }

// now returns the time in the resolution that is kept.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// retentionOf returns how long done claims of a source are kept; 0: until they are purged.
func (s *Store) retentionOf(source string) time.Duration {
	if d, ok := s.retained[source]; ok {
		return d
	}
	if (hookonce.PurgeRequest{Kind: hookonce.PurgeOnce}).Covers(source) {
		return 0
	}
	return s.retention
}

// expiry is when a claim of the source that is done at now may be deleted, in seconds since 1970; 0: never. A clock that no
// clock can have shown says nothing about an age.
func (s *Store) expiry(source string, now time.Time) int64 {
	d := s.retentionOf(source)
	earliest, _ := hookonce.PurgeRequest{}.Span()
	if d == 0 || now.Before(earliest) {
		return 0
	}
	return now.Add(d).Unix() + 1
}

// Lookup implements [hookonce.Store], with a strongly consistent read.
func (s *Store) Lookup(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	r, err := s.known(ctx, ref)
	if err != nil {
		return hookonce.Claim{}, fmt.Errorf("dynamostore: look up %s: %w", ref, err)
	}
	return r.Claim, nil
}

// Response implements [hookonce.ResponseStore], with a strongly consistent read.
func (s *Store) Response(ctx context.Context, ref hookonce.Ref) (hookonce.Response, error) {
	r, err := s.known(ctx, ref)
	if err == nil && r.response == nil {
		err = hookonce.ErrNotFound
	}
	if err != nil {
		return hookonce.Response{}, fmt.Errorf("dynamostore: response of %s: %w", ref, err)
	}
	return *r.response, nil
}

// known returns the record under ref, and otherwise why there is none.
func (s *Store) known(ctx context.Context, ref hookonce.Ref) (*record, error) {
	if err := ref.Validate(); err != nil {
		return nil, err
	}
	if ref.Key == "" {
		return nil, hookonce.ErrNotFound
	}
	r, err := s.record(ctx, ref)
	if err == nil && r == nil {
		err = hookonce.ErrNotFound
	}
	return r, err
}

// record reads what is stored under ref; nil: nothing is.
func (s *Store) record(ctx context.Context, ref hookonce.Ref) (*record, error) {
	i, err := s.get(ctx, claimKey(ref))
	if err != nil {
		return nil, err
	}
	return i.record(ref)
}

// get reads an item, with a strongly consistent read; nil: there is none.
func (s *Store) get(ctx context.Context, key string) (item, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: item{attrKey: text(key)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, explain(err)
	}
	return out.Item, nil
}
