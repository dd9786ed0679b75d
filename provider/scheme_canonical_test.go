package provider

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// What is signed as one text is made so that nothing can be moved from one part of it to another.

// vectorOf returns the vector of that provider whose URL ends so.
func vectorOf(t *testing.T, name, end string) (*spec.Provider, *hookonce.Request) {
	t.Helper()
	all := published(t)
	i := slices.IndexFunc(all, func(v vector) bool { return v.Provider == name && strings.HasSuffix(v.URL, end) })
	if i < 0 {
		t.Fatalf("no vector of %s", name)
	}
	p, req := all[i].provider(t), all[i].request()
	one(t, p, req)
	return p, req
}

func TestBirdRejects(t *testing.T) {
	p, req := vectorOf(t, "bird", "?source=bird")
	req.Header.Set("MessageBird-Request-Timestamp", req.Header.Get("MessageBird-Request-Timestamp")+"\n"+req.URL)
	if why := reason(t, p, req); why.Reason != hookonce.ReasonTimestampMissing {
		t.Error(why)
	}
	for name, change := range map[string]func(*hookonce.Request){
		"no time":        func(r *hookonce.Request) { r.Header.Del("MessageBird-Request-Timestamp") },
		"two signatures": func(r *hookonce.Request) { r.Header.Add("MessageBird-Signature", "AAAA") },
		"another query":  func(r *hookonce.Request) { r.URL += "&more=1" },
	} {
		p, req := vectorOf(t, "bird", "?source=bird")
		change(req)
		if why := reason(t, p, req); why.Detail == "" {
			t.Errorf("%s: %v", name, why)
		}
	}
}

func TestContentfulRejects(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hookonce.Request)
		reason string
	}{
		"an unsigned time": {func(r *hookonce.Request) {
			r.Header.Set("X-Contentful-Signed-Headers", "x-contentful-signed-headers,x-contentful-topic,x-contentful-webhook-name")
		}, hookonce.ReasonSignatureMalformed},
		"an unsigned list": {func(r *hookonce.Request) {
			r.Header.Set("X-Contentful-Signed-Headers", "x-contentful-timestamp,x-contentful-topic,x-contentful-webhook-name")
		}, hookonce.ReasonSignatureMalformed},
		"a header that is absent": {func(r *hookonce.Request) { r.Header.Del("X-Contentful-Topic") }, hookonce.ReasonSignatureMalformed},
		"two topics":              {func(r *hookonce.Request) { r.Header.Add("X-Contentful-Topic", "other") }, hookonce.ReasonSignatureMalformed},
		"one header in another":   {func(r *hookonce.Request) { r.Header.Set("X-Contentful-Topic", "a;x-contentful-webhook-name:shop") }, hookonce.ReasonSignatureMalformed},
		"too many": {func(r *hookonce.Request) {
			r.Header.Set("X-Contentful-Signed-Headers", strings.Repeat("x-contentful-timestamp,", 64)+"x-contentful-signed-headers")
		}, hookonce.ReasonSignatureMalformed},
		"another path":       {func(r *hookonce.Request) { r.Header.Set("X-Contentful-Topic", "ContentManagement.Entry.delete") }, hookonce.ReasonSignatureMismatch},
		"two question marks": {func(r *hookonce.Request) { r.URL += "?a?b" }, hookonce.ReasonSignatureMismatch},
		"too late":           {func(r *hookonce.Request) { r.Now = r.Now.Add(5*time.Minute + time.Second) }, hookonce.ReasonTimestampOld},
		"too early":          {func(r *hookonce.Request) { r.Now = r.Now.Add(-5*time.Minute - time.Second) }, hookonce.ReasonTimestampFuture},
		"no number":          {func(r *hookonce.Request) { r.Header.Set("X-Contentful-Timestamp", "now") }, hookonce.ReasonTimestampMissing},
	} {
		t.Run(name, func(t *testing.T) {
			p, req := vectorOf(t, "contentful", "/hooks/cms")
			c.change(req)
			if why := reason(t, p, req); why.Reason != c.reason {
				t.Error(why)
			}
		})
	}
	if _, err := Build("contentful", spec.Settings{Secrets: spec.Secrets("short")}); err == nil || !strings.Contains(err.Error(), "64 characters") {
		t.Error(err)
	}
}

func TestPlivoRejects(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hookonce.Request)
		reason string
	}{
		"a field in the nonce": {func(r *hookonce.Request) {
			r.Header.Set("X-Plivo-Signature-V3-Nonce", "first.12345678901234567890")
			r.Body = []byte(strings.TrimSuffix(string(r.Body), "first"))
		}, hookonce.ReasonSignatureMalformed},
		"JSON":     {func(r *hookonce.Request) { r.Header.Set("Content-Type", "application/json") }, hookonce.ReasonSignatureMismatch},
		"no nonce": {func(r *hookonce.Request) { r.Header.Del("X-Plivo-Signature-V3-Nonce") }, hookonce.ReasonSignatureMissing},
		"seventeen signatures": {func(r *hookonce.Request) {
			r.Header.Set("X-Plivo-Signature-V3", strings.Repeat("AAAA,", 16)+r.Header.Get("X-Plivo-Signature-V3"))
		}, hookonce.ReasonSignatureMismatch},
		"another query": {func(r *hookonce.Request) { r.URL = strings.Replace(r.URL, "a=1", "a=3", 1) }, hookonce.ReasonSignatureMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			p, req := vectorOf(t, "plivo", "a=1")
			c.change(req)
			if why := reason(t, p, req); why.Reason != c.reason {
				t.Error(why)
			}
		})
	}
	p, req := vectorOf(t, "plivo", "a=1")
	signature := req.Header.Get("X-Plivo-Signature-V3")
	for header, line := range map[string]string{"X-Plivo-Signature-Ma-V3": signature, "X-Plivo-Signature-V3": "AAAA, " + signature} {
		req.Header.Del("X-Plivo-Signature-V3")
		req.Header.Set(header, line)
		one(t, p, req)
		req.Header.Del("X-Plivo-Signature-Ma-V3")
	}
}

// TestPlivoKeys: callbacks that may repeat every field have none.
func TestPlivoKeys(t *testing.T) {
	p := Plivo("https://shop.example/in", "s")
	for _, c := range []struct{ form, key string }{
		{"MessageUUID=m&Status=sent", "1:m4:sent"},
		{"MessageUUID=m&Status=failed&ErrorCode=30", "1:m6:failed2:30"},
		{"MessageUUID=m&Type=sms&Text=hi", "1:m3:sms"},
		{"CallUUID=c&Event=Hangup&HangupCause=NORMAL_CLEARING", "1:c15:NORMAL_CLEARING6:Hangup"},
		{"CallUUID=c&CallStatus=in-progress&Digits=1", ""},
	} {
		form, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		req := &hookonce.Request{URL: "https://shop.example/in", Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Body: []byte(form.Encode()), Now: now}
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		if ev := one(t, p, req); ev.Key != c.key || ev.KeySigned {
			t.Errorf("%s: %q, %v", c.form, ev.Key, ev.KeySigned)
		}
	}
}
