package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
)

// webhook posts messages as Standard Webhooks describe it.
type webhook struct {
	opt  Options
	url  *url.URL
	keys [][]byte
}

func newWebhook(c Config, o Options) (*webhook, error) {
	to, err := outgoing.ParseAddress(c.Address)
	if err != nil {
		return nil, err
	}
	keys, err := outgoing.Keys(c.Secrets)
	return &webhook{o, to, keys}, err
}

// Body is what a webhook gets.
type Body struct {
	Type      string    `json:"type"` // alert.firing, alert.repeat, alert.resolved or alert.test
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Data is what the body of a webhook tells.
type Data struct {
	Title    string  `json:"title"`
	Text     string  `json:"text"`
	Severity string  `json:"severity"`
	Link     string  `json:"link,omitempty"`
	Alerts   []Alert `json:"alerts"`
}

func (w *webhook) send(ctx context.Context, m *Message) (string, error) {
	body, err := json.Marshal(Body{"alert." + string(m.State), m.At.UTC(), Data{m.Title, m.Text, m.Severity, m.Link, append([]Alert{}, m.Alerts...)}})
	if err != nil {
		return "", err
	}
	return post(ctx, w.opt, w.url, body, func(h http.Header) {
		id := opaque(m.Key)
		h.Set(header.IdempotencyKey, id)
		outgoing.Sign(h, w.keys, id, w.opt.Now(), body)
	})
}

// post sends JSON, and returns how its answer begins. Redirects are not followed: the address is what was meant.
func post(ctx context.Context, o Options, to *url.URL, body []byte, sign func(http.Header)) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	return carry(r, o, cancel, sign)
}

// carry makes a request that is complete but for what signs it.
func carry(r *http.Request, o Options, cancel func(), sign func(http.Header)) (string, error) {
	r.Header.Set("User-Agent", "hookonce")
	if user := r.URL.User; user != nil {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	if sign != nil {
		sign(r.Header)
	}
	began := o.Now()
	response, err := o.Transport.RoundTrip(r)
	if err != nil {
		return "", errors.New(retry.JudgeError(err, o.Now().Sub(began).Round(time.Millisecond)).Reason)
	}
	answer := outgoing.NewAnswer(response, cancel)
	defer answer.Drain()
	head := strings.TrimSpace(string(answer.Head()))
	said := response.Status
	if head != "" {
		said += ": " + head
	}
	if response.StatusCode/100 != 2 {
		return "", errors.New("it answered " + said)
	}
	return said, nil
}
