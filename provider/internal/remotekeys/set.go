package remotekeys

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/jws"
)

// keepSet is how long a set of keys is used before it is fetched again. It is used for keepStale longer if it cannot be.
const keepSet = time.Hour

// Set is a JSON Web Key Set of a sender at one address, which no request chooses. However many ids requests make up, it
// is fetched once an hour, and once a minute at most when a key is asked for that it does not have.
type Set struct {
	client  *http.Client
	address string
	sets    *Cache[map[string]any]
}

// NewSet returns the set at that address, which must be one of https that the catalogue or the configuration names. It is
// fetched when a key is asked for.
func NewSet(client *http.Client, address string) *Set {
	s := &Set{client: client, address: address}
	s.sets = New(OfFiles, s.fetch)
	return s
}

// Key returns the public key with that id, an *rsa.PublicKey or an *ecdsa.PublicKey. Every error means that it cannot be
// decided now whether the request is authentic: the sender may use a key that is not in the set yet.
func (s *Set) Key(id string, req *hookonce.Request) (any, error) {
	set, err := s.sets.Get(s.address, req)
	if err != nil {
		return nil, err
	}
	if key, ok := set[id]; ok {
		return key, nil
	}
	if set, err = s.sets.Renew(s.address, req); err != nil {
		return nil, err
	}
	if key, ok := set[id]; ok {
		return key, nil
	}
	return nil, fmt.Errorf("the sender's key %q is not at %s", id, s.address)
}

// fetch implements the cache.
func (s *Set) fetch(ctx context.Context, address string, now time.Time) (set map[string]any, use Validity, err error) {
	text, err := Fetch(ctx, s.client, http.MethodGet, address, http.Header{}, "")
	if err != nil {
		return nil, use, err
	}
	set, err = jws.ParseSet(text)
	return set, RenewedAfter(now, keepSet), err
}
