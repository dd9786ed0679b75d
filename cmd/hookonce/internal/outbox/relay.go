package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/retry"
	"github.com/hookonce/hookonce/relay"
)

// Settings say how a relay works.
type Settings struct {
	Targets            []Target
	Permanent          []int         // statuses with which an effect is given up, besides 410
	Concurrency        int           // from 1 to 1000
	Attempts           int           // 1 or more
	Timeout, Lease     time.Duration // of an attempt; at least a second
	FirstWait, MaxWait time.Duration // after the first failure; between two attempts
}

// Target is where the effects of a name are posted, and the secrets and the keys of HTTP message signatures with which that
// is signed, if any.
type Target struct {
	Name, URL string
	Secrets   []string
	HTTPKeys  []HTTPKey
}

// HTTPKey is a key of HTTP message signatures as it is given.
type HTTPKey struct{ ID, Key string }

// Defaults are the settings without targets.
func Defaults() Settings {
	return Settings{
		Concurrency: relay.DefaultConcurrency, Attempts: retry.DefaultAttempts, Timeout: 30 * time.Second, Lease: relay.DefaultLease,
		FirstWait: retry.DefaultFirst, MaxWait: retry.DefaultLongest,
	}
}

// Relay posts the effects in an outbox.
type Relay struct {
	*relay.Relay
	posts atomic.Pointer[map[string]relay.Handler] // by name
}

// NewRelay returns a relay that posts the effects in queue. The settings must be valid.
func NewRelay(queue hookonce.EffectQueue, s Settings, log *slog.Logger) (*Relay, error) {
	r := &Relay{}
	if err := r.Follow(s); err != nil {
		return nil, err
	}
	handlers := map[string]relay.Handler{}
	for _, t := range s.Targets {
		handlers[t.Name] = r.post
	}
	r.Relay = relay.New(queue, handlers, relay.WithLogger(log), relay.WithConcurrency(s.Concurrency), relay.WithTimeout(s.Timeout),
		relay.WithLease(s.Lease), relay.WithSchedule(relay.Exponential(s.FirstWait, s.MaxWait, retry.Factor, s.Attempts)))
	return r, nil
}

// Follow has what is posted from now on go to the targets of s, which have the same names as
// before. What is under way goes on as it began.
func (r *Relay) Follow(s Settings) error {
	posts, err := s.handlers()
	if err == nil {
		r.posts.Store(&posts)
	}
	return err
}

func (r *Relay) post(ctx context.Context, e hookonce.QueuedEffect) error {
	return (*r.posts.Load())[e.Name](ctx, e)
}

// Validate returns an error that names the flag that is wrong, and repeats no address and no secret.
func (s *Settings) Validate() error {
	switch {
	case s.Concurrency < 1 || s.Concurrency > 1000:
		return errors.New("--concurrency: write a number from 1 to 1000")
	case s.Attempts < 1:
		return errors.New("--attempts must be at least 1")
	case s.Timeout <= 0:
		return errors.New("--timeout must be more than 0, such as 30s")
	case s.Lease < time.Second:
		return errors.New("--lease must be at least a second")
	case s.FirstWait <= 0 || s.MaxWait < s.FirstWait:
		return errors.New("--first-wait must be more than 0, and --max-wait at least as long")
	}
	_, err := s.handlers()
	return err
}

func (s *Settings) handlers() (map[string]relay.Handler, error) {
	if len(s.Targets) == 0 {
		return nil, errors.New("say where to post with --to NAME=URL")
	}
	handlers := map[string]relay.Handler{}
	for _, t := range s.Targets {
		if handlers[t.Name] != nil {
			return nil, fmt.Errorf("--to: %s is given twice; an effect goes to one place: enqueue one for each", t.Name)
		}
		options := []relay.PostOption{relay.PostPermanent(s.Permanent...), relay.PostSecrets(t.Secrets...)}
		for _, k := range t.HTTPKeys {
			options = append(options, relay.PostHTTPSignature(k.ID, k.Key))
		}
		h, err := relay.NewPOST(nil, t.URL, options...)
		if err != nil {
			return nil, fmt.Errorf("--to %s: %w", t.Name, err)
		}
		handlers[t.Name] = h
	}
	return handlers, nil
}
