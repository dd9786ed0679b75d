package spec

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/sjson"

	"github.com/hookonce/hookonce"
)

// Sign signs a request the way the sender does: in the first way of signing, with the first secret that is
// valid, at req.Now. It creates req.Header if that is nil, replaces the headers that it sets, and leaves all
// others alone. Where the sender puts the signature into the body, the body is replaced. It is there for
// demonstrations, load generators and tests.
//
// It fails if the scheme signs something that the request lacks: an identifier (see [Spec.Sample] for a
// header that has it), or the URL; and for schemes with a private key, which only the sender has.
func (p *Provider) Sign(req *hookonce.Request) error {
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	if err := p.seal(&p.verifiers[0], req, firstValid); err != nil {
		return fmt.Errorf("provider %s: cannot sign: %w", p.spec.Name, err)
	}
	return nil
}

// seal signs a request in one way, with the secrets of the given numbers: several only where the scheme carries
// several signatures.
func (p *Provider) seal(v *verifier, req *hookonce.Request, secrets ...int) error {
	r := p.reading(req)
	if v.signs(kindURL) && r.url == "" {
		return errors.New("the scheme signs the URL, and neither the request nor the settings have one")
	}
	var err error
	if r.id, err = v.identifier(r); err != nil {
		return err
	}
	if v.ts != nil {
		if err := v.stamp(p, r, v.unit.format(req.Now)); err != nil {
			return err
		}
	}
	if !v.perItem {
		return v.sealWith(p, req, r.signed, secrets)
	}
	return p.sealItems(v, req, r.signed, secrets[0])
}

// stamp puts the time where the scheme has it.
func (v *verifier) stamp(p *Provider, r *reading, text string) (err error) {
	r.ts = text
	switch v.ts.kind {
	case kindHeader:
		r.req.Header[v.ts.text] = []string{text}
	case kindJSON:
		path, raw := sjsonPath(v.ts.path), v.unit.json(r.req.Now)
		if doc := r.in(v.ts); v.ts.node < len(doc) && doc[v.ts.node].sort() == '"' { // Mailgun writes a number in quotes
			raw = `"` + text + `"`
		}
		if r.req.Body, err = sjson.SetRawBytes(r.req.Body, path, []byte(raw)); err == nil {
			err = p.holds(v.ts, r.req, text)
		}
	}
	return err
}

// holds checks that a value was put into the body: not every body has room for it.
func (p *Provider) holds(v *value, req *hookonce.Request, text string) error {
	if p.reading(req).get(v) != text {
		return fmt.Errorf("the body has no place for %s", v.describe())
	}
	return nil
}

// sealWith signs the whole request.
func (v *verifier) sealWith(p *Provider, req *hookonce.Request, says signed, secrets []int) error {
	r := p.reading(req)
	r.signed = says
	if err := v.legible(r); err != nil {
		return err
	}
	sigs := make([]string, len(secrets))
	for i, n := range secrets {
		var err error
		if sigs[i], err = v.matcher.seal(v, r, n); err != nil || v.kind == Code {
			return err
		}
	}
	if !v.carrier.numbered && !v.carrier.repeated {
		return v.carrier.put(p, req, v.line(says.ts, sigs...))
	}
	for i, sig := range sigs {
		sigs[i] = v.line(says.ts, sig)
	}
	return v.carrier.put(p, req, sigs...)
}

// line returns the text with the signatures: after the entries that are skipped, with the time among them
// where that belongs.
func (v *verifier) line(ts string, sigs ...string) string {
	entries := make([]string, v.carrier.skip, v.carrier.skip+len(sigs)+1)
	for _, sig := range sigs {
		entries = append(entries, v.carrier.prefix+sig)
	}
	switch {
	case v.ts == nil:
	case v.ts.kind == kindPart && v.carrier.skip > 0:
		entries[0] = v.ts.text + ts
	case v.ts.kind == kindPart:
		entries = slices.Insert(entries, 0, v.ts.text+ts)
	case v.ts.kind == kindEntry && v.ts.entry < v.carrier.skip:
		entries[v.ts.entry] = ts
	case v.ts.kind == kindEntry:
		entries = append(entries, make([]string, max(0, v.ts.entry-len(entries)))...)
		entries = slices.Insert(entries, v.ts.entry, ts)
	}
	return strings.Join(entries, v.carrier.join)
}

// sealItems signs every item of a batch, from the last to the first: what is before an item stays where
// it is.
func (p *Provider) sealItems(v *verifier, req *hookonce.Request, says signed, secret int) error {
	if p.layout.splitter.lines {
		return errors.New("a batch of several documents cannot be signed item by item")
	}
	items, err := p.layout.splitter.items(req.Body)
	if err != nil {
		return err
	}
	text := string(bytes.TrimSpace(req.Body))
	for _, it := range slices.Backward(items) {
		r := p.reading(req)
		r.signed = says
		r.enter(it)
		if err := v.legible(r); err != nil {
			return err
		}
		sig, err := v.matcher.seal(v, r, secret)
		if err != nil {
			return err
		}
		signed, err := sjson.Set(it.text, sjsonPath(v.carrier.in.path), v.carrier.prefix+sig)
		if err != nil {
			return err
		}
		text = text[:it.start] + signed + text[it.start+len(it.text):]
	}
	req.Body = []byte(text)
	return nil
}

// put writes the signature where the scheme has it: several lines where the header is numbered or repeated.
func (c *carrier) put(p *Provider, req *hookonce.Request, lines ...string) (err error) {
	line := lines[0]
	switch {
	case c.numbered:
		for i := len(lines); i < maxNumbered; i++ {
			delete(req.Header, c.in.text+strconv.Itoa(i+1))
		}
		for i := range lines {
			req.Header[c.in.text+strconv.Itoa(i+1)] = lines[i : i+1 : i+1]
		}
	case c.in.kind == kindHeader:
		req.Header[c.in.text] = lines
	case c.in.kind == kindJSON:
		document, form := p.reading(req).enclosed()
		if document, err = sjson.SetBytes(document, sjsonPath(c.in.path), line); err == nil {
			req.Body = form.around(document)
			err = p.holds(&c.in, req, line)
		}
	case c.in.kind == kindForm:
		var form url.Values
		if form, err = url.ParseQuery(string(req.Body)); err == nil {
			form.Set(c.in.text, line)
			req.Body = []byte(form.Encode())
		}
	default:
		separator := "?"
		if strings.Contains(req.URL, "?") {
			separator = "&"
		}
		req.URL += separator + url.QueryEscape(c.in.text) + "=" + url.QueryEscape(line)
	}
	return err
}

var sjsonEscapes = strings.NewReplacer(`\`, `\\`, ".", `\.`, "*", `\*`, "?", `\?`, "|", `\|`, "#", `\#`, "@", `\@`, ":", `\:`)

// sjsonPath writes a path the way sjson reads it. A name of digits has a colon in front, or it would be
// an index.
func sjsonPath(path []string) string {
	escaped := make([]string, len(path))
	for i, step := range path {
		inner, isIndex := strings.CutPrefix(step, "[")
		_, digits := parseDigits(step, 0)
		switch {
		case isIndex:
			escaped[i] = strings.TrimSuffix(inner, "]")
		case digits:
			escaped[i] = ":" + step
		default:
			escaped[i] = sjsonEscapes.Replace(step)
		}
	}
	return strings.Join(escaped, ".")
}
