package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/spec"
)

// gatewayTolerance is how far the time of a delivery may be from here, as Standard Webhooks has it.
const gatewayTolerance = 5 * time.Minute

// gatewayMaxBody is the largest body that any source of a gateway takes unless it is told otherwise.
const gatewayMaxBody = 32 << 20

// Hookonce returns the provider for applications behind hookonce's gateway, which signs what it
// delivers to a destination that has secrets, and for those to which a relay posts. The secrets are
// those; several while one is being replaced. It panics if a secret is missing, empty or, after
// whsec_, not base64.
//
// An event is what the sender's own provider would have made of it here: it has the same key, type, scope, rank,
// time, resource, tenant, digest and logical key, so that guards, audits and claims agree on both sides. Its
// source is the gateway's, whose keys it has: the events of several sources can come to one endpoint, and a
// [hookonce.Webhook] claims each in its own. An event that has no key, or only says that something changed, has
// its Idempotency-Key for a key, which names that one event: copies of the gateway's delivery are recognised by it,
// copies that the sender makes are not. What the gateway says besides is in [hookonce.Event.Gateway].
//
// It takes what a relay posts as well (relay.POST with secrets, `hookonce relay`): the header
// Hookonce-Effect tells it. An effect is an event of its own, and not the one that asked for it:
// its key is its Idempotency-Key, its type its name, and its source that of the endpoint, because
// senders of events may choose keys in theirs. What asked for it stands in its headers
// Hookonce-Source and Hookonce-Key. Two programs whose sources have equal names and keys need
// endpoints with sources of their own.
//
// Every destination of an event gets it under the same source and key. Endpoints that are destinations of the same
// events need stores with tables of their own, or one takes for a copy what another has done.
//
// Two signatures are required: that of Standard Webhooks, over the body, and Hookonce-Signature, over what the
// gateway's headers say. Their time may be five minutes off in either direction.
func Hookonce(secrets ...string) *HookonceProvider {
	keys, err := outgoing.Keys(secrets)
	switch {
	case err != nil:
		panic(fmt.Errorf("provider hookonce: %w", err))
	case len(keys) == 0:
		panic("provider hookonce: no secret is given; it needs those of the gateway's destination")
	}
	return &HookonceProvider{standardSigning{keys}}
}

// HookonceProvider is what [Hookonce] and [HookonceHTTP] return. It is immutable and safe for concurrent use.
type HookonceProvider struct{ signing gatewaySigning }

// gatewaySigning is one of the ways in which a gateway signs.
type gatewaySigning interface {
	// verify returns the number of the secret that a delivery is signed with, from 1. An error says why it is refused.
	verify(req *hookonce.Request) (secret int, err error)
	// sign signs a delivery, whose header is not nil.
	sign(req *hookonce.Request) error
}

// standardSigning is that of Standard Webhooks, with the signature over the headers beside it.
type standardSigning struct{ keys [][]byte }

var _ hookonce.Provider = (*HookonceProvider)(nil)

// Profile says how a gateway wants to be talked to: any 2xx tells it that the event is done. The largest body is that of
// a gateway none of whose sources has a max_body above 32 MiB; one that has is matched by [hookonce.WithMaxBody] here.
func (p *HookonceProvider) Profile() hookonce.Profile {
	return hookonce.Profile{Name: "hookonce", MaxBody: gatewayMaxBody}
}

// Format writes the name, whatever the verb: nothing inside a provider is for printing.
func (p *HookonceProvider) Format(f fmt.State, _ rune) { fmt.Fprint(f, "provider hookonce") }

// Open verifies a delivery of the gateway and returns its event. An error is a *[hookonce.RejectError].
func (p *HookonceProvider) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	secret, err := p.signing.verify(req)
	if err != nil {
		return nil, err
	}
	facts := factsReader{Header: req.Header}
	ev := facts.event(req.Body)
	if facts.wrong != nil {
		return nil, facts.wrong
	}
	ev.Body, ev.Header = req.Body, req.Header
	return &hookonce.Verified{Events: []hookonce.Event{ev}, Proof: hookonce.Proof{Covers: string(spec.CoversBody), Secret: secret}}, nil
}

// verify checks both signatures.
func (p standardSigning) verify(req *hookonce.Request) (secret int, err error) {
	var values [4]string
	for i, want := range []struct{ name, shape string }{
		{header.WebhookID, "the message's identifier"},
		{header.WebhookTimestamp, "seconds since 1970"},
		{header.WebhookSignature, "v1, and base64; does the destination have secrets?"},
		{header.HookonceSignature, "v1, and base64, as the gateway sends it beside " + header.WebhookSignature},
	} {
		if values[i], err = incoming.Required(req.Header, want.name, want.shape); err != nil {
			return 0, err
		}
	}
	id, timestamp := values[0], values[1]
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return 0, incoming.Reject(hookonce.ReasonTimestampMissing, "the header %s is not a number of seconds", header.WebhookTimestamp)
	}
	secret = outgoing.Verify(p.keys, id, timestamp, req.Body, values[2])
	switch off := req.Now.Sub(time.Unix(seconds, 0)); {
	case secret == 0:
		return 0, incoming.Reject(hookonce.ReasonSignatureMismatch, "the signature in %s was not made over this body with any of the secrets; they must be those of the gateway's destination", header.WebhookSignature)
	case outgoing.VerifyFacts(p.keys, id, timestamp, req.Header, values[3]) == 0:
		return 0, incoming.Reject(hookonce.ReasonSignatureMismatch, "the signature in %s was not made over these headers; does a proxy change or drop some that begin with %s, or %s?",
			header.HookonceSignature, header.OwnPrefix, header.IdempotencyKey)
	case off > gatewayTolerance:
		return 0, incoming.Reject(hookonce.ReasonTimestampOld, "it was signed %v ago, more than %v", off.Round(time.Second), gatewayTolerance)
	case off < -gatewayTolerance:
		return 0, incoming.Reject(hookonce.ReasonTimestampFuture, "it was signed %v ahead, more than %v: do the clocks agree?", -off.Round(time.Second), gatewayTolerance)
	}
	return secret, nil
}

// factsReader reads what the gateway's headers say.
type factsReader struct {
	http.Header
	wrong error // what could not be read: no gateway sends it
}

func (f *factsReader) event(body []byte) hookonce.Event {
	if name := f.text(header.HookonceEffect); name != "" {
		return f.effect(name, body)
	}
	ev := hookonce.Event{
		Source:    f.text(header.HookonceSource),
		Provider:  f.text(header.HookonceProvider),
		Key:       f.text(header.HookonceKey),
		KeyOrigin: "header:" + header.HookonceKey,
		KeySigned: f.flag(header.HookonceKeySigned),
		AttemptID: f.text(header.HookonceSenderAttemptID),
		Type:      f.text(header.HookonceEventType),
		Time:      f.time(header.HookonceTime),
		Resource:  f.text(header.HookonceResource),
		Tenant:    f.text(header.HookonceTenant),
		Logical:   f.text(header.HookonceLogical),
		Scope:     f.text(header.HookonceScope),
		Rank:      f.rank(header.HookonceRank),
		Gateway: hookonce.Gateway{
			IdempotencyKey:     f.Get(header.IdempotencyKey),
			Attempt:            f.attempt(),
			FirstSeen:          f.time(header.HookonceFirstSeen),
			LogicalDuplicateOf: f.text(header.HookonceLogicalDuplicateOf),
			Stale:              f.flag(header.HookonceStale),
			Forced:             f.flag(header.HookonceForced),
			Unprotected:        f.flag(header.HookonceUnprotected),
		},
	}
	if ev.Key == "" {
		ev.Key, ev.KeyOrigin, ev.KeySigned = ev.Gateway.IdempotencyKey, "header:"+header.IdempotencyKey, true
	}
	if ev.Source == "" || ev.Key == "" {
		f.fault("the headers %s and %s must say which event it is", header.HookonceSource, header.IdempotencyKey)
	}
	if ev.Rank.Kind == hookonce.RankVersion {
		ev.Version = strconv.FormatInt(ev.Rank.N, 10)
	}
	digest, err := hex.DecodeString(f.Get(header.HookonceDigest))
	if err != nil {
		f.fault("the header %s is not hexadecimal", header.HookonceDigest)
	}
	ev.Digest = digest
	return ev
}

// effect returns what a relay posts under that name. Both ways of signing cover its
// Idempotency-Key. The source is left to the endpoint.
func (f *factsReader) effect(name string, body []byte) hookonce.Event {
	key := f.Get(header.IdempotencyKey)
	if key == "" {
		f.fault("the header %s must say which effect it is", header.IdempotencyKey)
	}
	digest := sha256.Sum256(body)
	return hookonce.Event{
		Key: key, KeyOrigin: "header:" + header.IdempotencyKey, KeySigned: true, Type: name, Digest: digest[:],
		Gateway: hookonce.Gateway{IdempotencyKey: key, Attempt: f.attempt()},
	}
}

func (f *factsReader) fault(format string, args ...any) {
	if f.wrong == nil {
		f.wrong = incoming.Reject(hookonce.ReasonSignatureMalformed, format, args...)
	}
}

func (f *factsReader) text(name string) string {
	text, err := url.PathUnescape(f.Get(name))
	if err != nil {
		f.fault("the header %s is not percent-encoded", name)
	}
	return text
}

func (f *factsReader) flag(name string) bool { return f.Get(name) == "true" }

func (f *factsReader) attempt() int64 {
	return f.number(header.HookonceAttempt, f.Get(header.HookonceAttempt))
}

func (f *factsReader) number(name, text string) int64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f.fault("the header %s has no number where one belongs", name)
	}
	return n
}

func (f *factsReader) time(name string) time.Time {
	text := f.Get(name)
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		f.fault("the header %s is not a time as RFC 3339 writes it", name)
	}
	return at
}

// rank reads the kind and the number with a colon between.
func (f *factsReader) rank(name string) hookonce.Rank {
	kind, number, ok := strings.Cut(f.Get(name), ":")
	switch r := (hookonce.Rank{Kind: hookonce.RankKind(kind), N: f.number(name, number)}); {
	case !ok:
		return hookonce.Rank{}
	case r.Kind == hookonce.RankVersion, r.Kind == hookonce.RankTime:
		return r
	}
	f.fault("the header %s has a rank of a kind that is not known here", name)
	return hookonce.Rank{}
}

// Sign signs a request as the gateway does, at req.Now, with a signature for each secret. What the headers do not say
// about the event stays unsaid, save Webhook-Id, for which a name is made of the Idempotency-Key. It is there for tests.
// It fails where the gateway signs with a private key, and only the public one is known: see
// [HookonceHTTPConfig.AsSender].
func (p *HookonceProvider) Sign(req *hookonce.Request) error {
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	return p.signing.sign(req)
}

func (p standardSigning) sign(req *hookonce.Request) error {
	id := "msg_" + header.Safe(req.Header.Get(header.IdempotencyKey))
	outgoing.Sign(req.Header, p.keys, id, req.Now, req.Body)
	return nil
}

// Spec returns no more than what a test needs to make deliveries: a name and an example. What the gateway verifies and
// finds is the affair of each source's provider.
func (p *HookonceProvider) Spec() spec.Spec {
	return spec.Spec{
		Name: p.Profile().Name, Title: "hookonce's gateway",
		Event:  spec.Extract{Key: [][]spec.Value{{spec.Value("header:" + header.HookonceKey)}}},
		Limits: spec.Limits{MaxBody: gatewayMaxBody},
		Example: spec.Template{
			Type:   "invoice.paid",
			Object: "in_1001",
			Header: map[string]string{
				header.HookonceSource:    "billing",
				header.HookonceKey:       "{{id}}",
				header.IdempotencyKey:    "billing:{{id}}",
				header.HookonceEventType: "{{type}}",
				header.HookonceProvider:  "standard",
				header.HookonceKeySigned: "true",
				header.HookonceResource:  "{{object}}",
				header.HookonceScope:     "{{object}}",
				header.HookonceRank:      "version:{{version}}",
				header.HookonceTime:      "{{time}}",
				header.HookonceFirstSeen: "{{time}}",
				header.HookonceAttempt:   "1",
			},
			Body: standardExample,
		},
	}
}
