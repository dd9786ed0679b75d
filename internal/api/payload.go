package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
)

// Form is how bodies and headers of events are shown.
type Form string

// The forms.
const (
	FormOff    Form = "off"
	FormMasked Form = "masked" // with what they say replaced: names, structure, types and lengths stay
	FormFull   Form = "full"   // as they are stored, but for what lets somebody in
)

// The parts of an event that can be looked at.
const (
	PartBody    = "body"
	PartHeaders = "headers"
)

// payloadPath is the end of paths under which events are looked at.
const payloadPath = "/payload"

// MaxShown is how much of a body is shown, in bytes.
const MaxShown = 256 << 10

// Look asks for a part of an event.
type Look struct {
	Part   string `json:"part,omitempty" enum:"body,headers" default:"body"`
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit log."`
}

type lookInput struct {
	IDPath
	Body Look
}

// lookOutput is kept by nobody on its way.
type lookOutput struct {
	CacheControl string `header:"Cache-Control"`
	Sniff        string `header:"X-Content-Type-Options"`
	Body         Payload
}

// Payload is what of an event is shown.
type Payload struct {
	ID      string         `json:"id"`
	Part    string         `json:"part" enum:"body,headers"`
	Form    Form           `json:"form" enum:"masked,full"`
	Type    string         `json:"content_type,omitempty" doc:"As the sender has it."`
	Bytes   int64          `json:"bytes,omitempty" doc:"Of the whole body."`
	SHA256  string         `json:"sha256,omitempty" doc:"Of the whole body. Missing where it is masked: whoever guesses what it says could tell by it."`
	Text    string         `json:"text,omitempty" doc:"The body. Missing where it is no text, or, masked, neither JSON nor a form."`
	Base64  string         `json:"base64,omitempty" doc:"The body, if it is no text."`
	Cut     bool           `json:"cut,omitempty" doc:"The body goes on."`
	Headers []HeaderOfLook `json:"headers,omitempty"`
}

// HeaderOfLook is one line of a header.
type HeaderOfLook struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Masked bool   `json:"masked,omitempty"`
}

// look shows a part of an event to who may, after that is on record.
func (a *api) look(ctx context.Context, in *lookInput) (*lookOutput, error) {
	form, who := a.opt.Payloads(), VisitorOf(ctx)
	switch {
	case form == FormOff:
		return nil, huma.Error403Forbidden("bodies and headers are shown to nobody here; admin_payloads: masked shows them without what they say")
	case !who.Payloads:
		return nil, huma.Error403Forbidden(noPayloads(who.Name))
	case !plain(in.Body.Reason):
		return nil, invalid("body.reason", "this is not readable text", nil)
	}
	var out *lookOutput
	err := a.ask(ctx, writeTime, func(ctx context.Context) error {
		var lines, body []byte
		err := a.opt.Records.Contents(ctx, []int64{in.ID}, func(_ int64, h, b []byte) error {
			lines, body = slices.Clone(h), slices.Clone(b)
			return nil
		})
		switch {
		case err != nil:
			return err
		case lines == nil && body == nil:
			return huma.Error404NotFound("there is no such event, or its body was deleted")
		}
		// What cannot be put on record is not shown.
		err = a.opt.Records.RecordAudit(ctx, journal.Audit{
			At: a.opt.Now(), By: who.Name, Reason: in.Body.Reason, Action: journal.ActionLook, Filter: "the " + in.Body.Part + " of " + journal.IDText(in.ID) + ", " + string(form),
		})
		if err != nil {
			return err
		}
		p := Payload{ID: journal.IDText(in.ID), Part: in.Body.Part, Form: form}
		if in.Body.Part == PartHeaders {
			p.Headers = shownHeaders(header.Decode(lines), form)
		} else {
			p.show(body, header.Decode(lines).Get("Content-Type"))
		}
		out = &lookOutput{"no-store", "nosniff", p}
		return nil
	})
	return out, err
}

// noPayloads says which right the bearer of a token lacks who may not look.
func noPayloads(name string) string {
	return "the token of " + name + " may not look at bodies and headers; that takes payloads: true beside it in admin_tokens"
}

// show fills in a body.
func (p *Payload) show(body []byte, kind string) {
	p.Type, p.Bytes = kind, int64(len(body))
	if p.Form == FormMasked {
		p.Text, p.Cut = mask(body, kind)
		return
	}
	sum := sha256.Sum256(body)
	p.SHA256 = hex.EncodeToString(sum[:])
	switch {
	case utf8.Valid(body):
		p.Text, p.Cut = cutText(string(body))
	default:
		p.Cut = len(body) > MaxShown
		p.Base64 = base64.StdEncoding.EncodeToString(body[:min(len(body), MaxShown)])
	}
}

// cutText returns what of a text is shown.
func cutText(text string) (shown string, cut bool) {
	if len(text) <= MaxShown {
		return text, false
	}
	return strings.ToValidUTF8(text[:MaxShown], ""), true
}

// safeHeaders say nothing about anybody.
var safeHeaders = []string{"Accept", "Accept-Encoding", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Host", "User-Agent"}

// credential matches names of headers that may have in them what lets somebody in. They are never shown.
var credential = regexp.MustCompile(`(?i)auth|cookie|token|secret|passw|credential|session|(^|-)key$|api-?key`)

// shownHeaders returns the lines of a header, by name.
func shownHeaders(h http.Header, form Form) []HeaderOfLook {
	all := []HeaderOfLook{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		masked := credential.MatchString(name) || form == FormMasked && !slices.Contains(safeHeaders, textproto.CanonicalMIMEHeaderKey(name))
		for _, value := range h[name] {
			value = strings.ToValidUTF8(value, "\uFFFD")
			if masked {
				value = masks(value)
			}
			all = append(all, HeaderOfLook{name, value, masked})
		}
	}
	return all
}
