package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/journal"
)

// silent is a store that keeps no audit log.
type silent struct{ journal.Store }

func (silent) RecordAudit(context.Context, journal.Audit) error {
	return errors.New("the disk is full")
}

// carrying gives an event a header and a body.
func carrying(header, body string) func(*journal.Record) {
	return func(r *journal.Record) { r.Header, r.Body = []byte(header), []byte(body) }
}

// A body is shown to who may look, in the form that the configuration allows, and after that is on record; to nobody else.
func TestWhoMayLook(t *testing.T) {
	const reader, looker, operator = "a-fake-token-for-reading", "a-fake-token-for-looking", "a-fake-token-for-operators"
	tokens := []api.Token{{Name: "r", Secret: reader, Role: api.Read}, {Name: "l", Secret: looker, Role: api.Read, Payloads: true}, {Name: "o", Secret: operator, Role: api.Operator}}
	look := api.Look{Part: "body", Reason: "ticket 4711"}
	for _, tt := range []struct {
		form   api.Form
		token  string
		status int
	}{
		{api.FormOff, looker, 403}, {api.FormMasked, reader, 403}, {api.FormMasked, operator, 403}, {api.FormMasked, looker, 200}, {api.FormFull, looker, 200},
	} {
		r := newRig(t)
		r.form = tt.form
		r.serve(tokens...)
		id := r.accept("evt", journal.Dead, carrying("Content-Type: application/json\r\n", `{"name":"Ada"}`))
		req := request("POST", fmt.Sprintf("/api/v1/events/%d/payload", id), look)
		req.Header.Set("Authorization", "Bearer "+tt.token)
		w, answer := r.send(req)
		audits, err := r.model.Audits(t.Context(), 0, 10)
		if err != nil || w.Code != tt.status || len(audits) != map[int]int{200: 1}[w.Code] {
			t.Errorf("%+v: %d %v, %d on record", tt, w.Code, answer, len(audits))
			continue
		}
		shown := strings.Contains(w.Body.String(), "Ada")
		if shown != (tt.form == api.FormFull && w.Code == 200) {
			t.Errorf("%+v: shown %v", tt, shown)
		}
		if w.Code == 200 {
			want := fmt.Sprintf("look by l for ticket 4711: the body of %d, %s", id, tt.form)
			if a := audits[0]; fmt.Sprintf("%s by %s for %s: %s", a.Action, a.By, a.Reason, a.Filter) != want {
				t.Errorf("on record is %+v", a)
			}
			if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("the answer has %v", w.Header())
			}
		}
		detail := request("GET", fmt.Sprintf("/api/v1/events/%d", id), nil)
		detail.Header.Set("Authorization", "Bearer "+tt.token)
		if got, may := r.expect(detail, 200)["payload"], w.Code == 200; (got == string(tt.form)) != may {
			t.Errorf("%+v: the event says %v", tt, got)
		}
	}
}

// A look without a reason, at nothing, or that cannot be put on record, shows nothing; and a right to look is none to change.
func TestLookRefused(t *testing.T) {
	r := newRig(t)
	r.form = api.FormFull
	r.serve()
	id := r.accept("evt", journal.Dead, carrying("", `{"name":"Ada"}`))
	path := fmt.Sprintf("/api/v1/events/%d/payload", id)
	r.post(path, api.Look{Part: "body"}, 422)
	r.post(path, api.Look{Part: "all", Reason: "x"}, 422)
	r.post("/api/v1/events/1/payload", api.Look{Part: "body", Reason: "x"}, 404)
	r.records = silent{r.model}
	r.serve()
	if w, _ := r.send(request("POST", path, api.Look{Part: "body", Reason: "x"})); w.Code != 503 || strings.Contains(w.Body.String(), "Ada") || strings.Contains(r.log.String(), "Ada") {
		t.Errorf("without a record: %d %s", w.Code, w.Body)
	}
	r.records = r.model
	r.serve(api.Token{Name: "l", Secret: "a-fake-token-for-looking", Role: api.Read, Payloads: true})
	replay := request("POST", fmt.Sprintf("/api/v1/events/%d/replay", id), map[string]string{"reason": "x"})
	replay.Header.Set("Authorization", "Bearer a-fake-token-for-looking")
	r.expect(replay, 403)
}

// What is masked has names, structure, types and lengths, and nothing of what it says. What has no structure has a size.
// No hash is shown: it would tell whoever guesses what a body says.
func TestMasks(t *testing.T) {
	const kind = "Content-Type: application/json\r\n"
	const form = "Content-Type: application/x-www-form-urlencoded\r\n"
	deep := strings.Repeat("[", 3000) + strings.Repeat("]", 3000)
	for name, tt := range map[string]struct {
		header, body, want string
	}{
		"objects":       {kind, `{"id":"evt_1","amount":-12.50e3,"live":false,"gone":null,"tags":["ä","b"],"none":{},"list":[]}`, "{\n  \"id\": \"*****\",\n  \"amount\": -99.99e9,\n  \"live\": true,\n  \"gone\": null,\n  \"tags\": [\n    \"*\",\n    \"*\"\n  ],\n  \"none\": {},\n  \"list\": []\n}"},
		"names as data": {kind, `{"ada@example.com":1,"4111111111111111":{"a b":2}}`, "{\n  \"***************\": 9,\n  \"****************\": {\n    \"***\": 9\n  }\n}"},
		"a text":        {kind, `"secret"`, `"******"`},
		"no JSON":       {kind, `{"id":"evt_1"`, ""},
		"a form":        {"Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n", "from=%2B4917&Body=hi+there&ada%40example.com=x", "from=*****\nBody=********\n***************=*\n"},
		"curl's JSON":   {form, `{"company":"Brown&JaneDoe&Partners"}`, "{\n  \"company\": \"**********************\"\n}"},
		"broken JSON":   {form, `{"company":"Brown&JaneDoe=1&Partners`, ""},
		"cut JSON":      {form, " [1, \"a&JohnSmith=b", ""},
		"no names":      {form, "hunter2secret", "*************\n"},
		"one name":      {form, "user=a&JohnSmith", "user=*\n*********\n"},
		"a broken form": {"Content-Type: application/x-www-form-urlencoded\r\n", "from=%zz", ""},
		"markup":        {"Content-Type: text/html\r\n", "<script>alert(1)</script>", ""},
		"binary":        {"Content-Type: application/octet-stream\r\n", "\xff\x00", ""},
		"JSON unsaid":   {"", `[true]`, "[\n  true\n]"},
	} {
		r := newRig(t)
		r.form = api.FormMasked
		r.serve()
		id := r.accept("evt", journal.Dead, carrying(tt.header, tt.body))
		p := r.post(fmt.Sprintf("/api/v1/events/%d/payload", id), api.Look{Part: "body", Reason: "x"}, 200)
		text, _ := p["text"].(string)
		if text != tt.want || p["bytes"] != float64(len(tt.body)) || p["sha256"] != nil || p["base64"] != nil {
			t.Errorf("%s: %v", name, p)
		}
	}
	for name, body := range map[string]string{"deep": deep, "long": `["` + strings.Repeat(`a","`, 200_000) + `a"]`} {
		r := newRig(t)
		r.form = api.FormMasked
		r.serve()
		id := r.accept("evt", journal.Dead, carrying(kind, body))
		p := r.post(fmt.Sprintf("/api/v1/events/%d/payload", id), api.Look{Part: "body", Reason: "x"}, 200)
		if text, _ := p["text"].(string); len(text) > api.MaxShown || len(text) < 1000 {
			t.Errorf("%s: %d bytes are shown", name, len(text))
		}
	}
}

// Headers are masked unless they say nothing about anybody; what lets somebody in always is.
func TestLookAtHeaders(t *testing.T) {
	const lines = "Authorization: Basic YTpi\r\nContent-Type: text/plain\r\nStripe-Signature: t=1,v1=ab\r\nX-Gitlab-Token: glpat\r\n"
	for form, want := range map[api.Form]string{
		api.FormMasked: "[{Authorization ********** true} {Content-Type text/plain false} {Stripe-Signature ********* true} {X-Gitlab-Token ***** true}]",
		api.FormFull:   "[{Authorization ********** true} {Content-Type text/plain false} {Stripe-Signature t=1,v1=ab false} {X-Gitlab-Token ***** true}]",
	} {
		r := newRig(t)
		r.form = form
		r.serve()
		id := r.accept("evt", journal.Dead, carrying(lines, "hello"))
		w, _ := r.send(request("POST", fmt.Sprintf("/api/v1/events/%d/payload", id), api.Look{Part: "headers", Reason: "x"}))
		var p api.Payload
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || fmt.Sprint(p.Headers) != want || p.Text != "" {
			t.Errorf("%s: %+v %v", form, p, err)
		}
	}
}

// Names under which senders put what lets somebody in are masked in every form; those of signatures and identifiers are not.
func TestCredentialsAreNeverShown(t *testing.T) {
	for name, hidden := range map[string]bool{
		"Proxy-Authorization": true, "Set-Cookie": true, "X-Gitlab-Token": true, "X-Client-Secret": true, "X-Password": true, "X-Apikey": true,
		"Api-Key-Id": true, "X-Shared-Key": true, "Access-Key": true, "Key": true, "X-Amz-Credential": true, "Ocp-Apim-Subscription-Key": true,
		"Session": true, "X-Session-Id": true, "X-Hub-Signature-256": false, "Webhook-Id": false, "Keyword": false, "X-Monkey": false,
	} {
		r := newRig(t)
		r.form = api.FormFull
		r.serve()
		id := r.accept("evt", journal.Dead, carrying(name+": a-fake-value\r\n", ""))
		w, _ := r.send(request("POST", fmt.Sprintf("/api/v1/events/%d/payload", id), api.Look{Part: "headers", Reason: "x"}))
		var p api.Payload
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || len(p.Headers) != 1 || p.Headers[0].Masked != hidden || strings.Contains(w.Body.String(), "fake") == hidden {
			t.Errorf("%s: %s", name, w.Body)
		}
	}
}

// A mask is JSON of the same shape, and has no character of what it stands for.
func FuzzMask(f *testing.F) {
	f.Add(`{"a":[1,{"b":"c"}],"d e":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		masked, cut := api.MaskJSON([]byte(text))
		if !json.Valid([]byte(text)) || cut {
			return
		}
		if !json.Valid([]byte(masked)) || masked[0] != mark(strings.TrimLeft(text, " \t\r\n")[0]) {
			t.Errorf("%q became %q", text, masked)
		}
	})
}

// Whatever calls itself a form, the mask has no letters and digits in a row but those of names and the fillers.
func FuzzMaskForm(f *testing.F) {
	for _, seed := range []string{`{"company":"Brown&JaneDoe&Partners"}`, `{"company":"Brown&JaneDoe`, "hunter2secret", "user=a&JohnSmith", "a%20long+name=x&b=%4a%4b%4c%4d", "1234567"} {
		f.Add(seed)
	}
	runs := regexp.MustCompile(`[A-Za-z0-9]{4,}`)
	f.Fuzz(func(t *testing.T, text string) {
		var named []string
		if json.Valid([]byte(text)) {
			for d := json.NewDecoder(strings.NewReader(text)); ; {
				token, err := d.Token()
				if err != nil {
					break
				}
				if s, is := token.(string); is && regexp.MustCompile(`^\s*:`).MatchString(text[d.InputOffset():]) {
					named = append(named, runs.FindAllString(s, -1)...)
				}
			}
		} else {
			for field := range strings.SplitSeq(text, "&") {
				if name, _, is := strings.Cut(field, "="); is {
					name, _ = url.QueryUnescape(name)
					named = append(named, runs.FindAllString(name, -1)...)
				}
			}
		}
		masked, _ := api.Mask([]byte(text), "application/x-www-form-urlencoded")
		for _, run := range runs.FindAllString(masked, -1) {
			if run != "true" && run != "null" && strings.Trim(run, "9eE") != "" && !slices.Contains(named, run) {
				t.Errorf("%q of %q is shown: %q", run, text, masked)
			}
		}
	})
}

// mark returns the character that the mask of a document begins with, which begins with first.
func mark(first byte) byte {
	switch {
	case first >= '0' && first <= '9':
		return '9'
	case first == 'f':
		return 't'
	}
	return first
}
