package provider

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

// maxLabel is how much of a type, resource, tenant or delivery id is kept, in bytes.
const maxLabel = 255

// extractor is an [Extract] in compiled form. The rules for the key belong to the verifiers, because
// what is signed depends on the way of signing.
type extractor struct {
	delivery, kind, action, resource, tenant []value

	time []moment
	same []value
}

type moment struct {
	in   value
	unit Unit
}

// keyRule is one rule for the key.
type keyRule struct {
	parts  []value
	origin string
	signed bool
}

// reading is a verified request while its event is extracted.
type reading struct {
	req   *hookonce.Request
	proof proof
	doc   document
}

// event extracts the event.
func (p *Provider) event(r *reading) hookonce.Event {
	ev := p.bare(r)
	ev.Digest = p.digest(r)
	for i := range r.proof.by.keys {
		rule := &r.proof.by.keys[i]
		if key := rule.read(r); key != "" {
			ev.Key, ev.KeyOrigin, ev.KeySigned = key, rule.origin, rule.signed
			break
		}
	}
	x := &p.extract
	ev.Delivery = label(r.first(x.delivery))
	ev.Type = eventType(r.first(x.kind), r.first(x.action))
	ev.Time = r.moment(x.time)
	ev.Resource = label(r.first(x.resource))
	ev.Tenant = label(r.first(x.tenant))
	return ev
}

// opaque returns the unkeyed event of a request whose body can not be read.
func (p *Provider) opaque(r *reading) hookonce.Event {
	ev := p.bare(r)
	ev.Digest = digestOf(r.req.Body)
	return ev
}

// bare returns an event about which nothing is known but the request that brought it.
func (p *Provider) bare(r *reading) hookonce.Event {
	return hookonce.Event{Provider: p.spec.Name, Body: r.req.Body, Header: r.req.Header}
}

// text returns the text of a value, empty if it is absent or ambiguous. It may be a view of the body.
func (r *reading) text(v *value) string {
	switch v.kind {
	case kindHeader:
		text, _ := headerText(r.req.Header, v.text)
		return text
	case kindJSON:
		return r.doc.text(v.node)
	case kindConst:
		return v.text
	case kindID:
		return r.proof.id
	case kindTS:
		return r.proof.ts
	case kindURL:
		return r.req.URL
	}
	return ""
}

// first returns the first text that is present.
func (r *reading) first(values []value) string {
	for i := range values {
		if text := r.text(&values[i]); text != "" {
			return text
		}
	}
	return ""
}

// moment returns the first time that can be read, zero if there is none.
func (r *reading) moment(moments []moment) time.Time {
	for i := range moments {
		if at, ok := moments[i].unit.parse(r.text(&moments[i].in)); ok {
			return at
		}
	}
	return time.Time{}
}

// read returns the key, empty if a required part is absent, ambiguous or blank.
func (k *keyRule) read(r *reading) string {
	var room [8]string
	parts := room[:0]
	for i := range k.parts {
		text := r.text(&k.parts[i])
		switch {
		case strings.TrimSpace(text) != "":
			parts = append(parts, text)
		case !k.parts[i].optional:
			return ""
		}
	}
	if len(k.parts) == 1 {
		return hookonce.NormalKey(strings.Clone(parts[0]))
	}
	return hookonce.NormalKey(joined(parts))
}

// joined is [hookonce.JoinKey], but a part that lacks its optional companion has its length in front
// as well: as it is, it could be spelt like the two of them.
func joined(parts []string) string {
	if len(parts) == 1 {
		return strconv.Itoa(len(parts[0])) + ":" + parts[0]
	}
	return hookonce.JoinKey(parts...)
}

// eventType joins type and action with a dot.
func eventType(kind, action string) string {
	if kind == "" || action == "" {
		return label(kind)
	}
	return label(kind + "." + action)
}

// label returns text as a copy that can be logged, stored and sent in a header: valid UTF-8, without
// control characters, at most maxLabel bytes.
func label(text string) string {
	if len(text) > maxLabel {
		end := maxLabel
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexFunc(text, unicode.IsControl) < 0 {
		return strings.Clone(text)
	}
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return utf8.RuneError
		}
		return c
	}, text)
}
