package main

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// verdict is what a source would make of a request.
type verdict struct {
	Verified bool `json:"verified"`
	// Reason is why the request is rejected, or why no event can be read from one that is verified.
	Reason string `json:"reason"`
	// Code is one of hookonce's closed set of reasons.
	Code     string `json:"code,omitempty"`
	Hint     string `json:"hint,omitempty"`
	Provider string `json:"provider"`
	// Covers says what the signature binds, and Secret is the number of the one that matched.
	Covers    string         `json:"covers,omitempty"`
	Secret    int            `json:"secret,omitempty"`
	Secrets   int            `json:"secrets"`
	Items     []verdictItem  `json:"items"`
	Handshake *verdictAnswer `json:"handshake,omitempty"`
	Answer    verdictAnswer  `json:"answer"`
}

// verdictItem is one event.
type verdictItem struct {
	Key       string     `json:"key"`
	KeySource string     `json:"key_source"`
	KeySigned bool       `json:"key_signed"`
	Type      string     `json:"type"`
	Resource  string     `json:"resource,omitempty"`
	Time      *time.Time `json:"time,omitempty"`
	Tenant    string     `json:"tenant,omitempty"`
	AttemptID string     `json:"attempt_id,omitempty"`
	Attempt   string     `json:"sender_attempt,omitempty"`
	Cause     string     `json:"sender_reason,omitempty"`
	Logical   string     `json:"logical_key,omitempty"`
	Twins     string     `json:"twins,omitempty"` // what the gateway does with another event of that logical key
	Version   string     `json:"version,omitempty"`
	OnRepeat  string     `json:"on_repeat"`
	Repeat    string     `json:"repeat"`
	OnRetry   string     `json:"stable_on_retry,omitempty"`
	OnResend  string     `json:"stable_on_resend,omitempty"`
}

// verdictAnswer is an HTTP response.
type verdictAnswer struct {
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	Body        string `json:"body,omitempty"`
}

func newAnswer(a hookonce.Answer) verdictAnswer {
	return verdictAnswer{a.Status, a.ContentType, string(a.Body)}
}

// judge opens the request and says what came of it.
func judge(p *spec.Provider, settings spec.Settings, req *hookonce.Request) *verdict {
	known := p.Spec()
	v := &verdict{Provider: p.Name(), Secrets: len(settings.Secrets), Items: []verdictItem{}}
	d, err := p.Open(req)
	if err != nil {
		v.refuse(p, settings, req, err)
	} else {
		v.accept(p, d)
	}
	if v.Hint == "" && v.Handshake == nil && !settings.Handshakes && looksLikeHandshake(known, settings, req) {
		v.Hint = "this looks like a handshake; it is answered where handshakes are enabled: try --handshakes, and --token if it asks for one"
	}
	return v
}

// accept fills in what a verified request or a handshake carries.
func (v *verdict) accept(p *spec.Provider, d *hookonce.Verified) {
	v.Verified, v.Covers, v.Secret = d.Proof.Secret > 0, d.Proof.Covers, d.Proof.Secret
	v.Answer = newAnswer(p.OK())
	switch {
	case d.Reply != nil:
		v.Answer = newAnswer(*d.Reply)
		v.Handshake = &v.Answer
		if !v.Verified {
			v.Reason = "a handshake that the sender does not sign: it is answered, nothing is verified and nothing is stored"
		}
	case d.Unreadable != nil:
		v.Reason = d.Unreadable.Error()
		v.Hint = "the signature is valid, so the request would be passed on as one event without a key: nothing is lost"
	default:
		for i := range d.Events {
			v.Items = append(v.Items, newItem(p.Spec(), &d.Events[i]))
		}
	}
}

// refuse fills in why the request is not authentic, or why that cannot be decided.
func (v *verdict) refuse(p *spec.Provider, settings spec.Settings, req *hookonce.Request, err error) {
	rejected, notReady := p.Refusals()
	var rej *hookonce.RejectError
	if !errors.As(err, &rej) {
		v.Reason, v.Answer.Status = err.Error(), notReady
		return
	}
	v.Reason, v.Code, v.Answer.Status = rej.Error(), rej.Reason, rejected
	if rej.Status != 0 {
		v.Answer.Status = rej.Status
	}
	switch rej.Reason {
	case hookonce.ReasonTimestampOld, hookonce.ReasonTimestampFuture:
		v.Hint = "the time of arrival is taken to be " + req.Now.UTC().Format(time.RFC3339) + " (--now " + strconv.FormatInt(req.Now.Unix(), 10) +
			"); for a request that was captured earlier, give its own with --now"
	case hookonce.ReasonSignatureMismatch:
		if p.Spec().SignsURL() && settings.URL == "" {
			v.Hint = "the signature covers the URL, which is not given: it is --url, or --signed-url where it is registered with the sender as another one"
		}
	}
}

// looksLikeHandshake reports whether the request would be answered, or refused for its token, if
// handshakes were enabled.
func looksLikeHandshake(known spec.Spec, settings spec.Settings, req *hookonce.Request) bool {
	if len(known.Handshakes) == 0 {
		return false
	}
	settings.Handshakes, settings.Token = true, "any token"
	p, err := spec.New(known, settings)
	if err != nil {
		return false
	}
	d, err := p.Open(req)
	var rej *hookonce.RejectError
	if errors.As(err, &rej) {
		return rej.Reason == hookonce.ReasonHandshakeRefused && rej.Status == http.StatusForbidden
	}
	return err == nil && d.Reply != nil
}

func newItem(known spec.Spec, ev *hookonce.Event) verdictItem {
	item := verdictItem{
		Key: ev.Key, KeySource: ev.KeyOrigin, KeySigned: ev.KeySigned,
		Type: ev.Type, Resource: ev.Resource, Tenant: ev.Tenant, AttemptID: ev.AttemptID,
		Attempt: ev.SenderAttempt, Cause: ev.SenderReason, Logical: ev.Logical, Version: ev.Version,
		OnRepeat: string(known.Dedup.OnRepeat), Repeat: repeatOf(known, ev),
		OnRetry: string(known.Dedup.Retry), OnResend: string(known.Dedup.Manual),
	}
	if !ev.Time.IsZero() {
		item.Time = &ev.Time
	}
	if ev.Logical != "" {
		item.Twins = twinsOf(known, ev.Type)
	}
	return item
}

// repeatOf says what would happen to a copy of the event.
func repeatOf(known spec.Spec, ev *hookonce.Event) string {
	switch {
	case known.Dedup.OnRepeat == spec.Off:
		return "passes on: nothing recognises a copy (on_repeat is off)"
	case ev.Key == "" && len(known.Event.Key) == 0:
		return "passes on: no key is known for this provider"
	case ev.Key == "":
		return "passes on, unkeyed: the event lacks " + keyText(known.KeyRules())
	case known.Dedup.OnRepeat == spec.KeepLatest:
		return "with equal content it is dropped as a duplicate; with other content it is a newer edition and passes on"
	case known.Dedup.OnRepeat == spec.Coalesce:
		return "adds nothing while this one waits to be handled, and counts as new once that has begun"
	}
	return "is dropped as a duplicate; other content under this key would be flagged as a conflict, and dropped"
}

// twinsOf says what the gateway does with another event with the same logical key.
func twinsOf(known spec.Spec, eventType string) string {
	for _, l := range known.Dedup.Logical {
		if l.Mode == spec.DropTwin && slices.Contains(l.Types, eventType) {
			return string(spec.DropTwin)
		}
	}
	return string(spec.Flag)
}

// keyText writes the rules for a key.
func keyText(rules [][]spec.Value) string {
	texts := make([]string, len(rules))
	for i, rule := range rules {
		parts := make([]string, len(rule))
		for j, part := range rule {
			parts[j] = string(part)
		}
		texts[i] = strings.Join(parts, " + ")
	}
	return strings.Join(texts, ", or else ")
}
