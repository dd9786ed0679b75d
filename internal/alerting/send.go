package alerting

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

const (
	lookEvery = 5 * time.Second    // between two looks for what has to be told
	sendTime  = 15 * time.Second   // for one message
	leaseTime = time.Minute        // after which another gateway sends it
	firstWait = 15 * time.Second   // after the first failure; each further wait is twice as long
	mostWait  = 5 * time.Minute    // between two tries
	giveUp    = 3 * 24 * time.Hour // after which an address is not told any more
	maxError  = 300                // bytes of an error that are kept
)

// sender tells the addresses what waits in one queue. One message at a time is under way to each address.
type sender struct {
	queue   journal.Alerter
	opt     *Options
	metrics *metrics
	wake    chan struct{}
	busy    sync.Map // addresses that are being told, by name
}

// up makes the sender look at once.
func (s *sender) up() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run tells until ctx ends.
func (s *sender) run(ctx context.Context) {
	var under sync.WaitGroup
	defer under.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		for _, to := range s.opt.Settings().Addresses {
			if _, busy := s.busy.LoadOrStore(to.Name, true); !busy {
				under.Go(func() {
					defer s.busy.Delete(to.Name)
					s.drain(ctx, to)
				})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.wake:
		}
	}
}

// flush tells all addresses what waits for them.
func (s *sender) flush(ctx context.Context) {
	for _, to := range s.opt.Settings().Addresses {
		s.drain(ctx, to)
	}
}

// drain tells one address, message by message, until nothing is due.
func (s *sender) drain(ctx context.Context, to Address) {
	for ctx.Err() == nil {
		now := s.opt.Now()
		ask, cancel := context.WithTimeout(ctx, askTime)
		taken, err := s.queue.TakeNotices(ask, now, now.Add(leaseTime), []string{to.Name}, MaxSubjects)
		cancel()
		if err != nil {
			s.opt.Logger.Debug("alerting: what has to be told could not be read; it is tried again", "error", err)
			return
		}
		if len(taken) == 0 {
			return
		}
		if !s.send(ctx, to, taken) {
			return
		}
	}
}

// send sends one message, and records what came of it. It reports whether the address has it, and that is on record. What waited
// for too long is given up and not sent: a channel that was removed and is there again is told how things are, not how they were.
func (s *sender) send(ctx context.Context, to Address, taken []journal.Notice) bool {
	m, outcomes := compose(taken, s.opt.Now())
	var err error
	if len(m.Notifications) > 0 {
		sending, cancel := context.WithTimeout(ctx, sendTime)
		err = to.Notifier.Notify(sending, m)
		cancel()
		s.metrics.tell(to.Name, len(m.Notifications), err)
	}
	now := s.opt.Now()
	for i := range outcomes {
		o := &outcomes[i]
		if o.At = now; o.Err != "" || err == nil {
			continue
		}
		o.Err = shorten(err.Error())
		if next := now.Add(wait(o.Tries)); next.Sub(o.Since) < giveUp {
			o.Due = next
		}
		if ctx.Err() != nil {
			o.Due = now // it was cut off, and failed for no fault of the address
		}
	}
	if err != nil {
		s.opt.Logger.Warn("alerting: an address could not be told", "address", to.Name, "rule", m.Rule, "tries", taken[0].Tries, "error", shorten(err.Error()))
	}
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	if _, wrong := s.queue.FinishNotices(record, outcomes); wrong != nil {
		s.opt.Logger.Warn("alerting: it could not be recorded what was told, so it may be told again, under the same key", "address", to.Name, "error", wrong)
		return false
	}
	return err == nil
}

// compose makes one message of notices, which are of one rule. What cannot be read, or is too old, is given up.
func compose(taken []journal.Notice, now time.Time) (m Message, outcomes []journal.NoticeOutcome) {
	var keys []string
	for _, n := range taken {
		o := journal.NoticeOutcome{Notice: n, At: now}
		var one Notification
		if err := json.Unmarshal(n.Body, &one); err != nil {
			o.Err = "it cannot be read: " + err.Error()
		} else if now.Sub(n.Since) >= giveUp {
			o.Err = "it waited for three days, and says nothing about now"
		} else {
			m.Rule = one.Rule
			m.Notifications, keys = append(m.Notifications, one), append(keys, one.Key)
		}
		outcomes = append(outcomes, o)
	}
	m.Key = strings.Join(keys, "")
	if len(keys) > 1 {
		sum := sha256.Sum256([]byte(strings.Join(keys, "\n")))
		m.Key = m.Rule + "+" + hex.EncodeToString(sum[:16])
	}
	return m, outcomes
}

// wait is how long is waited after so many tries.
func wait(tries int) time.Duration { return min(firstWait<<min(max(tries-1, 0), 10), mostWait) }

func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}
