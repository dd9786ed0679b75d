package notify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	opsgenieapi "github.com/nicholas-fedor/shoutrrr/pkg/services/incident/opsgenie"
)

// opsgenie opens and closes alerts by Opsgenie's Alert API
// (https://docs.opsgenie.com/docs/alert-api): one for each alert, whose alias is made of its
// fingerprint. Package shoutrrr reads the address; its sender can open alerts alone, so that what
// is over would page once more.
type opsgenie struct {
	opt    Options
	url    *url.URL
	config *opsgenieapi.Config
}

const opsgenieHost = "api.opsgenie.com"

// readOpsgenie returns where alerts are, and what else an address says of them.
func readOpsgenie(u *url.URL) (*url.URL, *opsgenieapi.Config, error) {
	config := new(opsgenieapi.Config)
	if err := config.SetURL(u); err != nil && strings.Trim(u.Path, "/") != "" {
		return nil, nil, errors.New("a parameter behind the question mark is not known, or cannot be read; write such as ?priority=P1&tags=payments, or leave it out")
	}
	if config.APIKey = strings.Trim(u.Path, "/"); config.APIKey == "" || strings.Contains(config.APIKey, "/") {
		return nil, nil, errors.New("the key of an API integration is missing; write opsgenie://" + opsgenieHost + "/KEY")
	}
	return &url.URL{Scheme: "https", Host: cmp.Or(u.Host, opsgenieHost), Path: "/v2/alerts"}, config, nil
}

func newOpsgenie(u *url.URL, o Options) (*opsgenie, error) {
	to, config, err := readOpsgenie(u)
	return &opsgenie{o, to, config}, err
}

// The API's bounds. They are of characters, of which bytes are not fewer.
const (
	maxOpsgenieMessage     = 130
	maxOpsgenieDescription = 15_000
)

func (o *opsgenie) send(ctx context.Context, m *Message) (answer string, err error) {
	return tellEach(ctx, m, func(ctx context.Context, a *Alert) (string, error) {
		to, says := o.request(m, a)
		body, err := json.Marshal(says)
		if err != nil {
			return "", err
		}
		return post(ctx, o.opt, to, body, func(h http.Header) { h.Set("Authorization", "GenieKey "+o.config.APIKey) })
	})
}

// request returns what is asked for to tell of an alert: to open it, or to close it by its alias.
func (o *opsgenie) request(m *Message, a *Alert) (to *url.URL, says any) {
	c := o.config
	source := cmp.Or(c.Source, a.Installation, "hookonce")
	if a.State == Resolved {
		to = o.url.JoinPath(alias(a.Fingerprint), "close")
		to.RawQuery = "identifierType=alias"
		return to, opsgenieClosing{c.User, source, m.Title}
	}
	text := m.Text
	if c.Description != "" {
		text += "\n" + c.Description
	}
	return o.url, opsgenieapi.AlertPayload{
		Message: cut(a.Headline, maxOpsgenieMessage), Alias: alias(a.Fingerprint), Description: abridge(text, maxOpsgenieDescription, m.Link),
		Responders: c.Responders, VisibleTo: c.VisibleTo, Actions: c.Actions, Tags: c.Tags, Details: c.Details,
		Entity: cmp.Or(c.Entity, a.Subject), Source: source, Priority: c.Priority, User: c.User, Note: c.Note,
	}
}

// opsgenieClosing is the body of a request to close an alert.
type opsgenieClosing struct {
	User   string `json:"user,omitempty"`
	Source string `json:"source"`
	Note   string `json:"note"`
}

// alias returns a fingerprint in a form that can be a part of a path.
func alias(fingerprint string) string {
	sum := sha256.Sum256([]byte(fingerprint))
	return "hookonce-" + hex.EncodeToString(sum[:])
}
