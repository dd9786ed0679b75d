package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"
)

// Requests name the certificate or key that they were signed with. Fetching it happens before anything
// about the request is known to be true, so strangers can cause it: all of it is bounded.
const (
	fetchTimeout = 5 * time.Second
	fetchSize    = 64 << 10 // bytes of an answer
	fetchAtOnce  = 4        // per cache, of each sort of names
	fetchPerMin  = 60       // per cache, of names not found before: strangers can make up names without end
	keepNames    = 256      // names of each sort, found and not
	keepFailure  = time.Minute
)

var errFetchBusy = errors.New("too many keys of the sender are being fetched; try again")

// keyCache remembers the certificates or keys of a sender by their names. The same name is fetched
// once at a time. Names that were found before have slots of their own: names that strangers make up
// never keep a key from being renewed. Safe for concurrent use.
type keyCache[K any] struct {
	fetch    func(ctx context.Context, name string, now time.Time) (key K, until time.Time, err error)
	flights  singleflight.Group
	slots    chan struct{}
	renewals chan struct{}

	mu     sync.Mutex
	found  *simplelru.LRU[string, kept[K]] // with those that have to be renewed
	failed *simplelru.LRU[string, kept[error]]
	minute time.Time // when the count of fetches began
	count  int
}

type kept[T any] struct {
	value T
	until time.Time
}

// newKeyCache returns a cache in front of fetch, which says until when a key may be kept.
func newKeyCache[K any](fetch func(context.Context, string, time.Time) (K, time.Time, error)) *keyCache[K] {
	c := &keyCache[K]{fetch: fetch, slots: make(chan struct{}, fetchAtOnce), renewals: make(chan struct{}, fetchAtOnce)}
	c.found, _ = simplelru.NewLRU[string, kept[K]](keepNames, nil)      // fails for sizes
	c.failed, _ = simplelru.NewLRU[string, kept[error]](keepNames, nil) // below one only
	return c
}

// get returns the key of that name. Every error means that it can not be decided now whether the
// request is authentic.
func (c *keyCache[K]) get(name string, now time.Time) (K, error) {
	if key, err, ok := c.recall(name, now); ok {
		return key, err
	}
	result, err, _ := c.flights.Do(name, func() (any, error) {
		if key, err, ok := c.recall(name, now); ok { // another flight has just landed
			return key, err
		}
		return c.load(name, now)
	})
	key, _ := result.(K)
	return key, err
}

// recall returns what is remembered under the name.
func (c *keyCache[K]) recall(name string, now time.Time) (key K, err error, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.found.Get(name); ok && now.Before(k.until) {
		return k.value, nil, true
	}
	if f, ok := c.failed.Get(name); ok && now.Before(f.until) {
		return key, f.value, true
	}
	return key, nil, false
}

// load fetches the key and remembers the outcome.
func (c *keyCache[K]) load(name string, now time.Time) (key K, err error) {
	slots, ok := c.admit(name, now)
	if !ok {
		return key, errFetchBusy
	}
	defer func() { <-slots }()
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	key, until, err := c.fetch(ctx, name, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("the sender's key %q can not be had: %w", name, err)
		c.failed.Add(name, kept[error]{err, now.Add(keepFailure)})
		return key, err
	}
	c.failed.Remove(name)
	c.found.Add(name, kept[K]{key, until})
	return key, nil
}

// admit takes a slot, if one is free, and for a name that was not found before the minute's fetches are
// not used up. It returns where the slot has to be given back.
func (c *keyCache[K]) admit(name string, now time.Time) (slots chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found.Contains(name) {
		return c.renewals, take(c.renewals)
	}
	if since := now.Sub(c.minute); since < 0 || since >= time.Minute {
		c.minute, c.count = now, 0
	}
	if c.count >= fetchPerMin || !take(c.slots) {
		return nil, false
	}
	c.count++
	return c.slots, true
}

// take takes a slot if one is free.
func take(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// newFetchClient returns a client that goes to the host it was sent to and nowhere else.
func newFetchClient() *http.Client {
	return &http.Client{
		Timeout:       fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetchBody returns the body of a successful answer of at most fetchSize bytes. Its errors contain
// neither the request's header nor its body, which may hold secrets.
func fetchBody(client *http.Client, req *http.Request) ([]byte, error) {
	answer, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", req.URL.Host, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, fetchSize+1))
	if err == nil && len(body) > fetchSize {
		err = fmt.Errorf("%s answers with more than %d bytes", req.URL.Host, fetchSize)
	}
	return body, err
}
