package redisstore

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/redis/go-redis/v9"
)

// DefaultRetention is how long done claims are kept: twice and more what any provider of the catalogue
// goes on redelivering.
const DefaultRetention = 90 * 24 * time.Hour

// DefaultPrefix begins the names of all keys.
const DefaultPrefix = "hookonce"

// Store keeps claims in Redis. It is safe for concurrent use, and any number of stores in any number of
// processes may share a server or a cluster.
type Store struct {
	client    redis.UniversalClient
	clock     func() time.Time
	prefix    string
	retention time.Duration
	retained  map[string]time.Duration // by source, where it is another one
}

var _ hookonce.ResponseStore = (*Store)(nil)

// Option changes a Store when it is made.
type Option func(*Store)

// WithClock makes the store take its time from clock. The default is [time.Now]. Leases and the times
// that claims show go by it; only the expiry of done claims is counted by the server (see
// [WithRetention]). Times are kept in microseconds.
func WithClock(clock func() time.Time) Option { return func(s *Store) { s.clock = clock } }

// WithPrefix sets what the names of all keys begin with: letters, digits and "._:-", at most 64 bytes.
// The default is [DefaultPrefix]. Programs that share a server and must not see each other's claims
// need different ones.
func WithPrefix(prefix string) Option { return func(s *Store) { s.prefix = prefix } }

// WithRetention sets how long a claim that is done is kept, counted by the server from the moment when it
// was done. The default is [DefaultRetention]; zero keeps claims until [Store.Purge] deletes them. It
// must be at least twice the longest window in which the provider redelivers. Claims that are not done
// never expire.
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

// retentionOf returns how long done claims of a source are kept, in milliseconds; 0: until they are purged.
func (s *Store) retentionOf(source string) int64 {
	if d, ok := s.retained[source]; ok {
		return d.Milliseconds()
	}
	if (hookonce.PurgeRequest{Kind: hookonce.PurgeOnce}).Covers(source) {
		return 0
	}
	return s.retention.Milliseconds()
}

// New returns a store on client, which stays the caller's to close: a *redis.Client (also one from
// NewFailoverClient) or a *redis.ClusterClient. Set ContextTimeoutEnabled in its options: without it a
// call whose context ends goes on until the client's ReadTimeout. New does not connect; see
// [Store.Inspect]. It panics if an option makes no sense, and at a *redis.Ring: when one of its servers
// is down it looks for keys on another, which knows nothing of them, so that done work is done again.
func New(client redis.UniversalClient, opts ...Option) *Store {
	s := &Store{client: client, clock: time.Now, prefix: DefaultPrefix, retention: DefaultRetention}
	for _, o := range opts {
		o(s)
	}
	if err := s.validate(); err != nil {
		panic(err)
	}
	return s
}

func (s *Store) validate() error {
	_, ring := s.client.(*redis.Ring)
	switch {
	case s.client == nil || s.clock == nil:
		return fmt.Errorf("redisstore: New needs a client and a clock")
	case ring:
		return fmt.Errorf("redisstore: a redis.Ring forgets claims when one of its servers is down: use redis.ClusterClient")
	case !validRetention(s.retention):
		return fmt.Errorf("redisstore: WithRetention(%v): the period must be 0, or at least a millisecond", s.retention)
	}
	for source, d := range s.retained {
		if !validRetention(d) {
			return fmt.Errorf("redisstore: WithSourceRetention(%q, %v): the period must be 0, or at least a millisecond", source, d)
		}
	}
	return validPrefix(s.prefix)
}

func validRetention(d time.Duration) bool { return d == 0 || d >= time.Millisecond }

func validPrefix(prefix string) error {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"
	if prefix == "" || len(prefix) > 64 || strings.Trim(prefix, allowed) != "" {
		return fmt.Errorf("redisstore: the prefix %q cannot be used; write 1 to 64 letters, digits and ._:-", prefix)
	}
	return nil
}

// now returns the time in the resolution that is kept.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Names of keys end with the reference in braces. In a cluster what is in braces decides which server has
// the key, so all that is ever stored for a claim is on one.

func (s *Store) key(ref hookonce.Ref) string { return keyName(s.prefix+claimKeys, ref) }

const claimKeys = ":claim:"

func keyName(kind string, ref hookonce.Ref) string {
	return kind + "{" + hookonce.JoinKey(ref.Source, ref.Key) + "}"
}

// known returns the name of the key of a claim that there may be, and otherwise why there is none.
func (s *Store) known(ref hookonce.Ref) (string, error) {
	if err := ref.Validate(); err != nil {
		return "", err
	}
	if ref.Key == "" {
		return "", hookonce.ErrNotFound
	}
	return s.key(ref), nil
}

// Lookup implements [hookonce.Store]. It asks the primary, also where the client reads from replicas.
func (s *Store) Lookup(ctx context.Context, ref hookonce.Ref) (hookonce.Claim, error) {
	r, err := s.read(ctx, ref, fields)
	if err != nil {
		return hookonce.Claim{}, fmt.Errorf("redisstore: look up %s: %w", ref, err)
	}
	return r.claim(ref, 0)
}

// read returns fields of what is stored under ref. The first of them is there if the answer is not
// [hookonce.ErrNotFound].
func (s *Store) read(ctx context.Context, ref hookonce.Ref, names []any) (reply, error) {
	key, err := s.known(ref)
	if err != nil {
		return nil, err
	}
	r, err := s.run(ctx, lookupScript, key, names...)
	switch {
	case err != nil:
		return nil, err
	case len(r) != len(names):
		return nil, fmt.Errorf("the script returned %d values, not %d", len(r), len(names))
	case r[0] == nil:
		return nil, hookonce.ErrNotFound
	}
	return r, nil
}
