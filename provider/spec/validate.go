package spec

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/header"
)

// Validate refuses a specification that would lose events, let copies through or believe strangers. The
// error is of type [Faults]: one for each block, way of signing, rule or answer that is refused, with the
// field, why it is refused, and what to do. Package specyaml adds the lines. What cannot be compiled is reported
// by [New], which calls Validate first.
func (s Spec) Validate() error {
	s = s.WithDefaults()
	var all Faults
	for _, check := range []func(Spec, *Faults){checkEssentials, checkVerify, checkKeys, checkRepeat, checkLogicalDuplicates, checkHeaders, checkAnswer, checkReconcile} {
		check(s, &all)
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

func checkEssentials(s Spec, all *Faults) {
	if s.Name == "" {
		all.add(fault("name", "is missing"))
	}
	if len(s.Verify) == 0 {
		all.add(fault("verify", "is missing: every request must be authenticated; if the sender signs nothing, put a token into the URL and verify that (kind: token, signature: {in: query:token})"))
	}
	all.add(within("methods", checkMethods(s)))
	if s.Limits.MaxBody < 0 || s.Limits.Retry < 0 || s.Limits.Manual < 0 {
		all.add(fault("limits", "a size or window is negative"))
	}
}

// checkMethods refuses methods whose events nobody could verify, or take apart.
func checkMethods(s Spec) error {
	for _, method := range s.Methods {
		if method != http.MethodPost && method != http.MethodGet {
			return fmt.Errorf("there is no event with %q; use POST and GET", method)
		}
	}
	switch {
	case !slices.Contains(s.Methods, http.MethodPost):
		return errors.New("lacks POST; a sender that uses GET can be told to use that")
	case len(s.Methods) == 1:
		return nil
	case s.Split != nil || s.Form != "":
		return errors.New("a GET has no body, which split and form take apart; remove GET")
	case slices.ContainsFunc(s.Verify, func(v Verify) bool { return !v.signsWholeURL() }):
		return errors.New("what a GET says is in its URL, which a way of signing does not cover: anybody could change it; remove GET")
	case slices.ContainsFunc(s.Verify, func(v Verify) bool {
		return v.Scheme == nil && v.Kind != HTTPSignature && !slices.Contains(v.Sign, "method")
	}):
		return errors.New("a POST could be sent as a GET, with its body at the end of the URL, since a way of signing does not cover the method; put method into sign, or remove GET")
	}
	return nil
}

// signsWholeURL reports whether the signature covers the URL.
func (v Verify) signsWholeURL() bool {
	return slices.Contains(v.Sign, "url") || v.Kind == HTTPSignature || v.URLHash != "" || v.Scheme != nil && v.Scheme.Signs("url")
}

// checkVerify refuses schemes that leave something out of what is signed.
func checkVerify(s Spec, all *Faults) {
	for i, v := range s.Verify {
		err := v.check(s.Split != nil)
		if err == nil && s.Form != "" && v.Kind == PlainHash && v.Sign[len(v.Sign)-1] != "secret" {
			err = fault("sign", "ends with something else than the secret, so anybody can append to the hash, and to a form (form); a hash over a form is safe only where the secret comes last")
		}
		all.add(within(fmt.Sprintf("verify[%d]", i), err))
	}
}

func (v Verify) check(batches bool) error {
	if err := v.checkItems(batches); err != nil {
		return err
	}
	if v.Kind == HTTPSignature {
		return v.checkHTTP()
	}
	if v.Kind != JWT && (v.URLHash != "" || len(v.Claims) > 0) {
		return errors.New("url_hash, claims: only a JWT has claims; remove them")
	}
	if v.Kind == Code || v.Kind == JWT || v.Kind == Token || v.Kind == Basic {
		return v.checkUnsigned()
	}
	switch {
	case len(v.Sign) == 0:
		return fault("sign", "is missing: say what is signed, as in [ts, \"const:.\", body]")
	case v.Covers == "":
		return fault("sign", "does not contain body: anybody could change it; if the sender really signs no more, say so with covers: fields or covers: nonce")
	case v.Covers == CoversBody && v.coverage() != CoversBody:
		return fault("covers", "says body, but sign does not contain it")
	case v.Kind == PlainHash != slices.Contains(v.Sign, "secret"):
		return fault("sign", "the secret belongs into a plain hash (kind: hash), where it must be, and into nothing else")
	case slices.Contains(v.Sign, "ts") && v.Time == nil:
		return fault("sign", "has ts, but time does not say where that is")
	case slices.Contains(v.Sign, "id") != (v.ID != ""):
		return errors.New("sign and id must both have the identifier")
	case v.Unescape != "" && !slices.Contains(v.Sign, "url"):
		return fault("unescape", "is for the URL, which sign does not contain; remove it")
	case strings.ContainsFunc(v.Unescape, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return fault("unescape", "lists the characters themselves, printable ASCII, as in \":/?\"")
	case v.Time != nil && !v.signsTime():
		return fault("time", "is not signed: a tolerance on a time that anybody can set protects nobody; put ts into sign, or remove time")
	}
	return nil
}

// checkItems holds what is verified item by item to the items.
func (v Verify) checkItems(batches bool) error {
	in, _ := parseValue(v.Signature.In) // New reports what cannot be parsed
	switch {
	case v.PerItem && !batches:
		return fault("per_item", "there are items only where split takes batches apart")
	case v.PerItem && (v.Kind == Code || v.Kind == JWT || v.Kind == HTTPSignature || v.Kind == Basic):
		return fault("per_item", "a %s does not come with an item; remove per_item", v.Kind)
	case v.PerItem != (in.kind == kindItem):
		return fault("per_item", "the signature or token of an item is in the item, as in item:$.signature, and no other is")
	}
	return nil
}

// signsTime reports whether nobody but the sender can have chosen the time: it is in Sign, or a member
// of a signed body.
func (v Verify) signsTime() bool {
	t, err := parseValue(v.Time.In)
	return slices.Contains(v.Sign, "ts") || err == nil && t.kind == kindJSON && slices.Contains(v.Sign, "body")
}

// checkUnsigned holds schemes that sign nothing themselves to that.
func (v Verify) checkUnsigned() error {
	switch {
	case v.Covers != v.coverage():
		return fault("covers", "says %s, but a %s covers %s", v.Covers, v.Kind, v.coverage())
	case v.Unescape != "":
		return fault("unescape", "a %s signs no URL; remove unescape", v.Kind)
	case v.ID != "" || v.PerItem && v.Kind != Token:
		return fmt.Errorf("id, per_item: a %s signs no identifier and no items; remove them", v.Kind)
	case v.Kind == JWT && v.Time != nil:
		if t, err := parseValue(v.Time.In); err != nil || t.kind != kindClaim {
			return fault("time", "is not signed; the times of a token are its claims, as in claim:iat")
		}
	case v.Time != nil:
		return fault("time", "is not signed: a tolerance on a time that anybody can set protects nobody; remove time")
	case len(v.Sign) > 0:
		return fault("sign", "a %s signs nothing; remove sign", v.Kind)
	}
	return nil
}

// checkKeys refuses keys that would be the same for all events, or another for each copy.
func checkKeys(s Spec, all *Faults) {
	for i, rule := range s.Event.Key {
		all.add(within(fmt.Sprintf("event.key[%d]", i), checkKey(s, rule)))
	}
}

func checkKey(s Spec, rule []Value) error {
	varies, required, distinguishes, ofItem := false, false, false, false
	for _, text := range rule {
		part, err := parseValue(text)
		if err != nil {
			return err
		}
		if s.namedIn(s.Event.AttemptID, part) || s.namedIn(s.Event.Attempt, part) || s.namedIn(s.Event.Reason, part) {
			return fmt.Errorf("%q identifies the attempt, not the event: every retry would count as new; use the id of the event", text)
		}
		if part.kind == kindConst {
			continue
		}
		varies = true
		required = required || !part.optional
		distinguishes = distinguishes || !part.optional && !s.namedIn(s.Event.Subscription, part)
		ofItem = ofItem || !part.optional && part.kind == kindItem
	}
	switch {
	case !varies:
		return errors.New("is the same for all events: all but the first would be dropped; a key needs a required part that is the event's own, as in json:$.id")
	case !required:
		return errors.New("can be empty: all events without it would be taken for one, and all but the first dropped; a key needs a required part")
	case !distinguishes:
		return errors.New("is that of the subscription, the same for all events: all but the first would be dropped; add the id of the event")
	case s.Split != nil && !ofItem:
		return errors.New("is the same for all items of a batch: all but the first would be dropped; add the id of the item, as in item:$.id")
	}
	return nil
}

// namedIn reports whether a list has the value, however it is spelt: with or without a question mark or
// a hash over it, as another spelling of the header, or as the identifier that is signed.
func (s Spec) namedIn(list []Value, part value) bool {
	return slices.ContainsFunc(list, func(text Value) bool {
		named, err := parseValue(text)
		return err == nil && (named.same(part) || slices.ContainsFunc(s.Verify, func(v Verify) bool {
			id, err := parseValue(v.ID)
			return part.kind == kindID && err == nil && id.same(named)
		}))
	})
}

// same reports whether both name one thing in the request.
func (v value) same(as value) bool {
	return v.kind == as.kind && v.text == as.text && slices.Equal(v.path, as.path)
}

func checkRepeat(s Spec, all *Faults) {
	d := s.Dedup
	switch {
	case !slices.Contains([]Repeat{Drop, KeepLatest, Coalesce, Off}, d.OnRepeat):
		all.add(fault("dedup.on_repeat", "there is no %q; use drop, keep_latest, coalesce or off", d.OnRepeat))
	case d.OnRepeat == Off && len(s.Event.Key) > 0:
		all.add(fault("dedup.on_repeat", "is off, but event.key has rules; remove one of them"))
	case (d.OnRepeat == KeepLatest || d.OnRepeat == Coalesce) && len(s.Event.Key) == 0:
		all.add(fault("dedup.on_repeat", "%s needs an event.key", d.OnRepeat))
	case d.OnRepeat == Drop && d.Retry == Unstable:
		all.add(fault("dedup.stable_on_retry", "is no: the key is another in every retry, so copies would pass; use the id of the event, or on_repeat: off"))
	}
	all.add(within("dedup.stable_on_retry", d.Retry.check()))
	all.add(within("dedup.stable_on_resend", d.Manual.check()))
}

func (s Stability) check() error {
	if !slices.Contains([]Stability{"", Stable, Unstable, NotSent}, s) {
		return fmt.Errorf("there is no stability %q; use yes, no or \"not sent\", or leave it out", s)
	}
	return nil
}

// checkLogicalDuplicates refuses to drop distinct events that nobody named.
func checkLogicalDuplicates(s Spec, all *Faults) {
	for i, l := range s.Dedup.Logical {
		all.add(within(fmt.Sprintf("dedup.logical[%d]", i), l.check(s)))
	}
}

func (l Logical) check(s Spec) error {
	switch {
	case l.Mode != Flag && l.Mode != DropLogicalDuplicate:
		return fault("mode", "there is no %q; use flag or drop", l.Mode)
	case l.Mode == DropLogicalDuplicate && len(l.Types) == 0:
		return fault("mode", "drop discards distinct events of every type, and nobody opted into that; list the types, or use mode: flag")
	case len(l.Key) == 0:
		return fault("key", "is missing")
	case l.Window < 0:
		return fault("window", "is negative")
	}
	return within("key", checkKey(s, l.Key))
}

func checkAnswer(s Spec, all *Faults) {
	a := s.Answer
	if a.Status < 200 || a.Status > 299 {
		all.add(fault("answer.status", "is %d; success is 200 to 299", a.Status))
	}
	if a.Reject != 503 && (a.Reject < 400 || a.Reject > 499) {
		all.add(fault("answer.reject", "is %d; a request that is not authentic is answered 400 to 499, or 503 where the sender takes those for a reason to give up for good", a.Reject))
	}
	if a.NotReady != 429 && (a.NotReady < 500 || a.NotReady > 599) {
		all.add(fault("answer.not_ready", "is %d; an event that is not durable must be sent again, so it is answered 500 to 599 or 429", a.NotReady))
	}
	if a.Deadline < 0 {
		all.add(fault("answer.deadline", "is negative"))
	}
}

// checkHeaders refuses headers that are never passed on.
func checkHeaders(s Spec, all *Faults) {
	for i, name := range s.Headers {
		if err := header.CheckPass(name); err != nil && !slices.Contains(s.headersRead(), textproto.CanonicalMIMEHeaderKey(name)) {
			all.add(within(fmt.Sprintf("headers[%d]", i), err))
		}
	}
}
