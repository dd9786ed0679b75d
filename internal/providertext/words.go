package providertext

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/provider/spec"
)

// mechanisms are what a proof is, by its kind.
var mechanisms = map[spec.Kind]string{
	spec.HMAC: "an HMAC", spec.PlainHash: "a digest of the secret and what is signed", spec.Ed25519: "an Ed25519 signature",
	spec.ECDSA: "an ECDSA signature", spec.RSA: "an RSA signature", spec.JWT: "a JSON Web Token",
	spec.HTTPSignature: "an HTTP message signature (RFC 9421)", spec.Token: "a token",
	spec.Basic: "a user name and a password", spec.Code: "a signature that is verified by code for this sender alone",
}

// Proof says what proves that a request is the sender's, and where it stands: each way once, "or" between them.
func (s Sender) Proof() string {
	var ways []string
	for _, v := range s.Verify {
		way := mechanisms[cmp.Or(v.Kind, spec.HMAC)]
		if v.Signature.In != "" {
			way += " in " + Where(v.Signature.In)
		}
		if v.Kind == spec.Token || v.Kind == spec.Basic {
			way += ", which proves nothing of the body"
		}
		if !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	return strings.Join(ways, ", or ")
}

// Key says where the key of an event is.
func (s Sender) Key() string {
	var rules []string
	for _, rule := range s.KeyRules() {
		parts := make([]string, len(rule))
		for i, v := range rule {
			parts[i] = Where(v)
		}
		rules = append(rules, strings.Join(parts, " and "))
	}
	return cmp.Or(strings.Join(rules, ", or else "), "none: nothing recognises a copy, and every event passes on")
}

// Proven says whether the signature covers the key.
func (s Sender) Proven() string {
	switch s.Signed() {
	case "yes":
		return "yes"
	case "no":
		return "no: whoever has seen one request can send its content again under another key"
	case "some":
		return "where it stands in what is signed, and not in the other places"
	}
	return "there is none"
}

// Retries says whether a retry has the key of the first attempt.
func (s Sender) Retries() string { return stability(s.Dedup.Retry, "the sender does not retry") }

// Resends says whether an event that a person has sent again has the key of before.
func (s Sender) Resends() string {
	return stability(s.Dedup.Manual, "nobody can have an event sent again")
}

func stability(known spec.Stability, never string) string {
	switch known {
	case spec.Stable:
		return "the same"
	case spec.Unstable:
		return "another: a copy is not recognised"
	case spec.NotSent:
		return never
	}
	return "not stated by anybody we found"
}

// Parts says where the events of a batch are, empty if a request is one event.
func (s Sender) Parts() string {
	if s.Split == nil {
		return ""
	}
	var all []string
	for _, v := range s.Split.Items {
		all = append(all, Where(v))
	}
	return "one request has several events: " + strings.Join(all, ", or ")
}

// Later says what tells a newer state of the resource from an older one, empty if nothing does.
func (s Sender) Later() string {
	if s.Spec.Order == nil {
		return ""
	}
	return "by " + Where(s.Spec.Order.By) + s.promise()
}

// kinds are the places that a value may name, in the order of what is cut off first.
var kinds = []struct{ prefix, before, after string }{
	{"lower:", "", " in lower case"},
	{"hash:", "a digest of ", ""},
	{"header:", "the header ", ""},
	{"json:", "", " in the JSON body"},
	{"item:", "", " of each event in the batch"},
	{"parent:", "", " of what holds the events of the batch"},
	{"form:", "the field ", " of the form"},
	{"query:", "the parameter ", " of the URL"},
	{"claim:", "the claim ", " of the token"},
	{"part:", "the part ", " of the signature header"},
	{"entry:", "the entry ", " of the signature header"},
	{"const:", "the text ", ""},
}

// whole are the values that name a thing and no place in it.
var whole = map[string]string{
	"body": "the body", "url": "the URL", "method": "the method", "sorted_form": "every field of the form",
	"ts": "the signed time", "id": "the signed identifier", "secret": "the secret",
	"json:$": "the JSON body", "item:$": "the event in the batch", "parent:$": "what holds the events of the batch",
}

// Where says in words where a value is found.
func Where(v spec.Value) string {
	text, optional := strings.CutSuffix(string(v), "?")
	if list, each := strings.CutSuffix(text, "[*]"); each {
		return "each element of " + Where(spec.Value(list))
	}
	words := whole[text]
	for _, k := range kinds {
		rest, found := strings.CutPrefix(text, k.prefix)
		if words != "" || !found {
			continue
		}
		switch k.prefix {
		case "lower:", "hash:":
			rest = Where(spec.Value(rest))
		case "json:", "item:", "parent:":
			rest = strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(rest, "$"), "."), "[*]", "")
		}
		words = k.before + rest + k.after
	}
	if words == "" {
		words = text
	}
	if optional {
		words += " (if it is there)"
	}
	return words
}
