package notify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// pager opens and closes incidents by PagerDuty's Events API v2
// (https://developer.pagerduty.com/docs/send-alert-event): one for each alert, under its fingerprint, so that the same message
// twice is one incident. Package shoutrrr has a sender for it that puts details where the API does not look for them.
type pager struct {
	opt Options
	url *url.URL
	key string
}

const pagerHost = "events.pagerduty.com"

var integrationKey = regexp.MustCompile(`^[A-Za-z0-9]{32}$`)

// readPager returns where to post to, and the integration's key.
func readPager(u *url.URL) (*url.URL, string, error) {
	key := strings.Trim(u.Path, "/")
	host := u.Host
	if key == "" && integrationKey.MatchString(host) {
		key, host = host, ""
	}
	if !integrationKey.MatchString(key) {
		return nil, "", errors.New("the key of an integration has 32 letters and digits; write pagerduty://" + pagerHost + "/KEY")
	}
	if u.RawQuery != "" || u.User != nil {
		return nil, "", errors.New("only the host and the key of the integration can be chosen; leave out the rest")
	}
	if host == "" {
		host = pagerHost
	}
	return &url.URL{Scheme: "https", Host: host, Path: "/v2/enqueue"}, key, nil
}

func newPager(u *url.URL, o Options) (*pager, error) {
	to, key, err := readPager(u)
	return &pager{o, to, key}, err
}

// incident is an event of the Events API.
type incident struct {
	RoutingKey  string    `json:"routing_key"`
	EventAction string    `json:"event_action"`
	DedupKey    string    `json:"dedup_key"`
	Payload     *payload  `json:"payload,omitempty"`
	Client      string    `json:"client,omitempty"`
	ClientURL   string    `json:"client_url,omitempty"`
	Links       []pageRef `json:"links,omitempty"`
}

type payload struct {
	Summary   string            `json:"summary"`
	Source    string            `json:"source"`
	Severity  string            `json:"severity"`
	Timestamp time.Time         `json:"timestamp"`
	Component string            `json:"component,omitempty"`
	Class     string            `json:"class,omitempty"`
	Details   map[string]string `json:"custom_details,omitempty"`
}

type pageRef struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// The API's bounds, in bytes of a text and of a key.
const (
	maxSummary  = 1024
	maxDedupKey = 255
)

func (p *pager) send(ctx context.Context, m *Message) (answer string, err error) {
	return tellEach(ctx, m, func(ctx context.Context, a *Alert) (string, error) {
		body, err := json.Marshal(p.incident(m, a))
		if err != nil {
			return "", err
		}
		return post(ctx, p.opt, p.url, body, nil)
	})
}

func (p *pager) incident(m *Message, a *Alert) incident {
	in := incident{RoutingKey: p.key, EventAction: "trigger", DedupKey: dedupKey(a.Fingerprint)}
	if a.State == Resolved {
		in.EventAction = "resolve"
		return in
	}
	in.Payload = &payload{
		Summary: cut(a.Headline, maxSummary), Source: cmp.Or(a.Installation, "hookonce"), Severity: pagerSeverity(a.Severity), Timestamp: m.At.UTC(), Component: a.Subject, Class: a.Rule,
		Details: map[string]string{"text": m.Text},
	}
	for name, value := range map[string]string{"event": a.Event, "type": a.Type, "error": a.Error, "next": a.Action, "command": a.Command} {
		if value != "" {
			in.Payload.Details[name] = value
		}
	}
	in.Client, in.ClientURL = "hookonce", m.Link
	if a.Link != "" {
		in.Links = []pageRef{{a.Link, "hookonce"}}
	}
	return in
}

// pagerSeverity says in the API's words who has to know.
func pagerSeverity(s string) string {
	switch s {
	case "page":
		return "critical"
	case "ticket":
		return "warning"
	}
	return "info"
}

// dedupKey returns a fingerprint in a form that the API takes.
func dedupKey(fingerprint string) string {
	key := "hookonce:" + fingerprint
	if len(key) > maxDedupKey {
		sum := sha256.Sum256([]byte(key))
		return "hookonce:" + hex.EncodeToString(sum[:])
	}
	return key
}

// maxPosts is how many alerts of a message are told at a time by requests of their own: as many as
// a message has one after the other could take longer than there is time for all of it.
const maxPosts = 8

// tellEach tells of each alert of a message by itself, and returns what was said to the first. If
// one fails the others are given up: all are told again later, and what was taken already is the
// same incident. What a test opens is closed, so that nobody has to.
func tellEach(ctx context.Context, m *Message, tell func(context.Context, *Alert) (string, error)) (answer string, err error) {
	each := func(alerts []Alert) (string, error) {
		answers := make([]string, len(alerts)+1)
		all, ctx := errgroup.WithContext(ctx)
		all.SetLimit(maxPosts)
		for i := range alerts {
			all.Go(func() (err error) {
				answers[i], err = tell(ctx, &alerts[i])
				return err
			})
		}
		err := all.Wait()
		return answers[0], err
	}
	answer, err = each(m.Alerts)
	if err == nil && m.State == Test {
		closed := slices.Clone(m.Alerts)
		for i := range closed {
			closed[i].State = Resolved
		}
		answer, err = each(closed)
	}
	return answer, err
}

// opaque returns a key in a form that a header and a mail can carry, whatever it is made of.
func opaque(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// abridge shortens a text to so many bytes, and has it end with where the rest can be read, if anybody said where.
func abridge(text string, limit int, link string) string {
	if link = "\n" + link; len(text) <= limit || link == "\n" || len(link) > limit/2 {
		return cut(text, limit)
	}
	return cut(text, limit-len(link)) + link
}

// cut shortens a text to so many bytes.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len("…")], "") + "…"
}
