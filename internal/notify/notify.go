// Package notify tells people: it sends a message over a channel, which is a webhook, a mailbox, a pager or a chat. What there
// is to tell, and when, others decide. A message is tried once; whoever tries it again does so under the same key.
//
// The address of a channel is a secret as a whole, for most of them hold a token: no error, no log line and no answer of this
// package has any of it but the scheme.
package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/outgoing"
)

// State says what a message tells of.
type State string

// The states.
const (
	Firing   State = "firing"   // it has begun
	Repeat   State = "repeat"   // it goes on
	Resolved State = "resolved" // it is over
	Test     State = "test"     // somebody tries whether it arrives
)

// Message is what people are told.
type Message struct {
	// Key is the same however often the message is sent. Webhooks have it as webhook-id and Idempotency-Key, mail as its
	// Message-ID.
	Key string
	// Thread is the same for all messages that belong together. Mail programs show them together.
	Thread string
	State  State
	// Severity is that of the worst of its alerts that are not over, or of all if all are: "page", "ticket" or "info".
	Severity string
	// Title is one line: the subject of a mail, at most [MaxTitle] bytes.
	Title string
	// Text says all, in lines of plain text, and begins with what the title says.
	Text string
	// Link is the page to look at. Empty: nobody said where the dashboard is.
	Link string
	// At is when the message was made.
	At time.Time
	// Alerts are what it is about, for programs. PagerDuty and Opsgenie have an incident for each.
	Alerts []Alert
}

// MaxTitle is how long a title may be, in bytes: more is cut off in the lists of mail programs and on the screens of pagers.
const MaxTitle = 70

// Alert is an alert as programs get it.
type Alert struct {
	// Key is the same whenever this is told again, in whichever message, and another one for all else.
	Key string `json:"key"`
	// Fingerprint is the same from the beginning of an alert to its end, and when it comes again.
	Fingerprint string `json:"fingerprint"`
	// Installation tells it from others. Empty: it has no name. Keys and fingerprints begin with it.
	Installation string    `json:"installation,omitempty"`
	Rule         string    `json:"rule"`
	Subject      string    `json:"subject,omitempty"`
	Severity     string    `json:"severity"`
	State        State     `json:"state"`
	Headline     string    `json:"headline"`
	Since        time.Time `json:"since"`
	Count        int64     `json:"count,omitempty"`
	Event        string    `json:"event,omitempty"`   // the identifier of a sample
	Type         string    `json:"type,omitempty"`    // of that event
	Error        string    `json:"error,omitempty"`   // of its last attempt
	Action       string    `json:"action,omitempty"`  // what to do next
	Command      string    `json:"command,omitempty"` // to type for it
	Link         string    `json:"link,omitempty"`    // to look at it
}

// Config says where a channel leads.
type Config struct {
	// Name is what people call it.
	Name string
	// Address is where it leads, see [Check].
	Address string
	// Secrets sign what goes to a webhook, every one of them, in the way of Standard Webhooks.
	Secrets []string
}

// Options are what all channels have in common. They go out by these ways, except for chats, whose library has ways of its own.
type Options struct {
	// Transport carries requests to webhooks, PagerDuty, Opsgenie, Telegram and the heartbeat.
	Transport http.RoundTripper
	// Dial connects to mail servers.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Now is the clock. Nil means [time.Now].
	Now func() time.Time
}

// sendTime is how long one message may take. Tests have less patience.
var sendTime = 15 * time.Second

// Channel is a way to tell people. It is safe for concurrent use.
type Channel struct {
	name  string
	opt   Options
	turns chan struct{}
	send  sender
	hide  hider
}

// sender sends a message, and returns what the receiver said. Its errors may have the address in them.
type sender interface {
	send(ctx context.Context, m *Message) (answer string, err error)
}

// maxUnderway is how many messages may be under way over one channel, those included that were given up and whose library does
// not let go of them. What is above is refused at once.
const maxUnderway = 4

// turnTime is after how long a message that does not come to an end makes room for another one: a library that never lets go
// must not make a channel dumb. It is longer than the libraries' own patience.
const turnTime = 2 * time.Minute

// New returns the channels of a configuration: one, or one for each receiver of a mail and each chat of Telegram, so that one
// who cannot be told any more keeps nothing from the others, and is told again alone. The first has the name of the configuration,
// each other one its number behind it, as in "team.2". What is wrong with an address is what [Check] says.
func New(c Config, o Options) (all []*Channel, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := Check(c.Address, c.Secrets); err != nil {
		return nil, err
	}
	u, _ := url.Parse(c.Address)
	var senders []sender
	switch u.Scheme {
	case "http", "https":
		senders = make([]sender, 1)
		senders[0], err = newWebhook(c, o)
	case "smtp", "smtps":
		senders, err = newMail(u, o)
	case "pagerduty":
		senders = make([]sender, 1)
		senders[0], err = newPager(u, o)
	case "opsgenie":
		senders = make([]sender, 1)
		senders[0], err = newOpsgenie(u, o)
	case "telegram":
		senders, err = newTelegram(u, o)
	default:
		senders = []sender{newChat(c.Address)}
	}
	if err != nil {
		return nil, err
	}
	for i, s := range senders {
		name := c.Name
		if i > 0 {
			name = fmt.Sprint(c.Name, ".", i+1)
		}
		all = append(all, &Channel{name: name, opt: o, turns: make(chan struct{}, maxUnderway), send: s, hide: newHider(c.Address)})
	}
	return all, nil
}

// Name returns what people call the channel.
func (c *Channel) Name() string { return c.name }

// Kind returns the scheme of the address: all of it that is no secret.
func (c *Channel) Kind() string { return c.hide.scheme }

// Send sends a message, in 15 seconds at most, and returns what the receiver said in a few words. An error may be shown and
// logged: it has nothing of the address. It leaves open whether the message arrived.
func (c *Channel) Send(ctx context.Context, m *Message) (answer string, err error) {
	select {
	case c.turns <- struct{}{}:
	default:
		return "", fmt.Errorf("%d messages over this channel are under way already, and do not come to an end", maxUnderway)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	type result struct {
		answer string
		err    error
	}
	done := make(chan result, 1)
	release := sync.OnceFunc(func() { <-c.turns })
	late := time.AfterFunc(turnTime, release)
	go func() {
		defer release()
		defer late.Stop()
		answer, err := c.try(ctx, m)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return "", errors.New(c.hide.error(r.err))
		}
		return c.hide.text(r.answer), nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return "", fmt.Errorf("no answer within %v", time.Since(began).Round(100*time.Millisecond))
		}
		return "", ctx.Err()
	}
}

// try sends a message. That a library panics at what a receiver says must not end the gateway.
func (c *Channel) try(ctx context.Context, m *Message) (answer string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("what sends it failed: %v", p)
		}
	}()
	return c.send.send(ctx, m)
}

// Schemes returns the schemes of all addresses, sorted.
func Schemes() []string {
	return slices.Sorted(slices.Values(slices.Concat([]string{"http", "https", "opsgenie", "pagerduty", "smtp", "smtps", "telegram"}, chatSchemes())))
}

// Check says whether messages can be sent to an address, signed with the secrets, without sending any, and what to write instead:
//
//	https://host/path                          a webhook, which is signed and so needs secrets
//	smtp://user:password@host:587?from=a@b.c&to=d@e.f,g@h.i
//	pagerduty://events.pagerduty.com/KEY       an integration of PagerDuty's Events API v2
//	opsgenie://api.opsgenie.com/KEY            an integration of Opsgenie's Alert API
//	telegram://TOKEN@telegram?chats=ID,ID
//	slack://..., discord://..., and so on      a chat, in the form that package shoutrrr gives it
//
// Its error repeats nothing of the address but the scheme, and nothing of the secrets.
func Check(address string, secrets []string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return errors.New("this is not the address of a channel; write one such as https://alerts.example.com/hooks or slack://hook:TOKEN@webhook")
	}
	scheme, _, custom := strings.Cut(u.Scheme, "+")
	signed := len(secrets) > 0
	if web := scheme == "http" || scheme == "https"; !web && signed {
		return fmt.Errorf("%s: there is nothing to sign; secrets are for webhooks alone, remove them", scheme)
	}
	switch {
	case scheme == "http", scheme == "https":
		if _, err := outgoing.ParseAddress(address); err != nil || u.Fragment != "" || custom {
			return errors.New("the address must begin with http:// or https:// and name a host, and have no fragment")
		}
		if err := checkReceiver(u); err != nil {
			return err
		}
		if !signed {
			return errors.New("a webhook is signed, so that its receiver knows who calls; add secrets, or write generic+https:// for a receiver that wants none")
		}
		_, err = outgoing.Keys(secrets)
	case scheme == "smtp", scheme == "smtps":
		_, err = readMail(u)
	case scheme == "pagerduty":
		_, _, err = readPager(u)
	case scheme == "opsgenie":
		_, _, err = readOpsgenie(u)
	case scheme == "telegram":
		_, _, err = readTelegram(u)
	case !slices.Contains(chatSchemes(), scheme):
		return fmt.Errorf("%q is no kind of channel; write one of %s", scheme, strings.Join(Schemes(), ", "))
	default:
		if err = checkChat(address); err != nil { // in the words of a library
			err = fmt.Errorf("%s; write %s", newHider(address).error(err), shapes[scheme])
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", scheme, err)
	}
	return nil
}
