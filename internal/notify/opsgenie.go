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
// (https://docs.opsgenie.com/docs/alert-api): one for each alert, and another one if it pages, since
// what is told again of one that is open is only counted there: a ticket that becomes a page would
// reach nobody. Package shoutrrr reads the address; its sender can open alerts alone, so that what
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
	return tellEach(ctx, m, func(ctx context.Context, a *Alert) (answer string, err error) {
		if a.State != Resolved {
			return o.post(ctx, o.url, o.opening(m, a))
		}
		for _, page := range []bool{true, false} { // whichever are open: nothing comes of the other
			to := o.url.JoinPath(alias(a, page), "close")
			to.RawQuery = "identifierType=alias"
			if answer, err = o.post(ctx, to, opsgenieClosing{o.config.User, o.source(a), m.Title}); err != nil {
				return "", err
			}
		}
		return answer, nil
	})
}

func (o *opsgenie) post(ctx context.Context, to *url.URL, says any) (answer string, err error) {
	body, err := json.Marshal(says)
	if err != nil {
		return "", err
	}
	return post(ctx, o.opt, to, body, func(h http.Header) { h.Set("Authorization", "GenieKey "+o.config.APIKey) })
}

// opsgeniePriorities are those of severities where the address says nothing.
var opsgeniePriorities = map[string]string{"page": "P1", "ticket": "P3", "info": "P5"}

func (o *opsgenie) source(a *Alert) string {
	return cmp.Or(o.config.Source, a.Installation, "hookonce")
}

// opening is what is asked for to open an alert.
func (o *opsgenie) opening(m *Message, a *Alert) opsgenieapi.AlertPayload {
	c, text := o.config, m.Text
	if c.Description != "" {
		text += "\n" + c.Description
	}
	return opsgenieapi.AlertPayload{
		Message: cut(a.Headline, maxOpsgenieMessage), Alias: alias(a, a.Severity == "page"), Description: abridge(text, maxOpsgenieDescription, m.Link),
		Responders: c.Responders, VisibleTo: c.VisibleTo, Actions: c.Actions, Tags: c.Tags, Details: c.Details,
		Entity: cmp.Or(c.Entity, a.Subject), Source: o.source(a), Priority: cmp.Or(c.Priority, opsgeniePriorities[a.Severity]), User: c.User, Note: c.Note,
	}
}

// opsgenieClosing is the body of a request to close an alert.
type opsgenieClosing struct {
	User   string `json:"user,omitempty"`
	Source string `json:"source"`
	Note   string `json:"note"`
}

// alias returns a fingerprint in a form that can be a part of a path, another one for what does not page.
func alias(a *Alert, page bool) string {
	of := a.Fingerprint
	if !page {
		of += "/ticket"
	}
	sum := sha256.Sum256([]byte(of))
	return "hookonce-" + hex.EncodeToString(sum[:])
}
