package oracle

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// Names that are referred to.
const (
	bodyByte  = "another byte in the body"
	emptyBody = "an empty body"
)

// change is something that is done to a signed request. Changes of one kind share a name.
type change struct {
	name  string
	apply func(*hookonce.Request)
}

// bodies returns bodies of all kinds, the same in every run.
func bodies() [][]byte {
	r := rand.New(rand.NewPCG(2026, 11))
	all := [][]byte{
		{},
		[]byte("{}"),
		[]byte("{\"id\":\"evt_1\"}\n"),
		[]byte(`{"id":"evt_2","text":"Grüße, 注文 ✓  <>& é"}`),
		[]byte("\xef\xbb\xbf{}\r\n"),
		[]byte("a=1&b=2&a=3"),
		{0},
	}
	for size := 1; size <= 1<<14; size *= 4 {
		noise := make([]byte, size)
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		all = append(all, noise)
	}
	return all
}

// kind names a body that some libraries do not take, however it is signed.
func kind(body []byte) string {
	if len(body) == 0 {
		return emptyBody
	}
	return "a body"
}

// changes returns what is done to the request, whose parts say what there is to change.
func changes(t *testing.T, s sdk, p *spec.Provider, req *hookonce.Request) []change {
	all := []change{
		{"another byte after the body", func(req *hookonce.Request) { req.Body = append(req.Body, '\n') }},
		{"no body", func(req *hookonce.Request) { req.Body = nil }},
	}
	all = append(all, bodyChanges(req.Body)...)
	for _, h := range s.signedHeaders(p) {
		all = append(all, h.changes(req.Header.Get(h.name))...)
	}
	for _, shift := range []time.Duration{-time.Hour, -6 * time.Minute, -4 * time.Minute, 4 * time.Minute, 6 * time.Minute, time.Hour} {
		all = append(all, change{"signed " + shift.String() + " from now", func(req *hookonce.Request) {
			req.Now = req.Now.Add(shift)
			s.resign(t, p, req)
			req.Now = req.Now.Add(-shift)
		}})
	}
	return all
}

// bodyChanges flips a bit at the ends of the body and in between.
func bodyChanges(body []byte) (all []change) {
	for i := 0; i < len(body); i += 1 + len(body)/32 {
		all = append(all, change{bodyByte, func(req *hookonce.Request) { req.Body[i] ^= 1 }})
	}
	return all
}

// header is one that holds the signature or is signed.
type header struct {
	role string // in the names of changes
	name string
}

// signedHeaders lists the headers whose changes must not go unnoticed.
func (s sdk) signedHeaders(p *spec.Provider) (all []header) {
	v := p.Spec().Verify[0]
	values := map[string]spec.Value{"signature": v.Signature.In, "id": v.ID}
	if s.header != "" {
		values["signature"] = spec.Value("header:" + s.header)
	}
	if v.Time != nil {
		values["time"] = v.Time.In
	}
	for role, value := range values {
		if name, ok := strings.CutPrefix(string(value), "header:"); ok {
			all = append(all, header{role, http.CanonicalHeaderKey(name)})
		}
	}
	return all
}

// changes changes every byte of a header, and the header as a whole. White space around it is not
// among them: servers remove it.
func (h header) changes(text string) []change {
	set := func(name string, texts ...string) change {
		return change{name + h.role, func(req *hookonce.Request) { req.Header[h.name] = texts }}
	}
	all := []change{
		set("no "),
		set("an empty ", ""),
		set("upper case in the ", strings.ToUpper(text)),
		set("a comma after the ", text+","),
		set("a second ", text, "other"),
		set("twice the ", text, text),
	}
	for i := range len(text) {
		before, c, after := text[:i], text[i], text[i+1:]
		all = append(all, set("another byte in the ", before+string([]byte{c ^ 1})+after), set("one byte less in the ", before+after))
		if c >= 'A' {
			all = append(all, set("another case in the ", before+string([]byte{c ^ 0x20})+after))
		}
	}
	return all
}

// head is the beginning of a body, for messages.
func head(body []byte) []byte { return body[:min(len(body), 200)] }
