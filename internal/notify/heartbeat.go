package notify

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/outgoing"
)

// Heartbeat tells somebody outside that all is well: who is told nothing for a while knows that something is wrong, even if there
// is nobody left to say so. It is safe for concurrent use.
type Heartbeat struct {
	opt  Options
	url  *url.URL
	hide hider

	mu   sync.Mutex
	next time.Time
}

const (
	heartbeatEvery = 30 * time.Second // services count in minutes
	heartbeatTime  = 10 * time.Second
)

// CheckHeartbeat says whether an address can be told that all is well. Its error repeats nothing of it.
func CheckHeartbeat(address string) error {
	_, err := outgoing.ParseAddress(address)
	return err
}

// NewHeartbeat returns what asks for an address, by GET, as services for heartbeats want it.
func NewHeartbeat(address string, o Options) (*Heartbeat, error) {
	u, err := outgoing.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Heartbeat{opt: o, url: u, hide: newHider(address)}, nil
}

// Beat says that all is well, unless that was said in the last 30 seconds or is being said. An error may be shown: it has nothing
// of the address.
func (b *Heartbeat) Beat(ctx context.Context) error {
	if !b.mu.TryLock() {
		return nil
	}
	defer b.mu.Unlock()
	now := b.opt.Now()
	if now.Before(b.next) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, heartbeatTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url.String(), nil)
	if err == nil {
		_, err = carry(r, b.opt, cancel, nil)
	}
	if err != nil {
		return errors.New(b.hide.error(err))
	}
	b.next = now.Add(heartbeatEvery)
	return nil
}
