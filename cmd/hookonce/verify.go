package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/diagnose"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider/spec"
)

const verifyHelp = `Verify takes a request as it was captured and says what a source would make of it: whether it is
authentic and if not why, each event's key and where it comes from, what a repeat would do, and how
the request would be answered. Nothing is stored. Nothing is sent either, with one exception: PayPal,
Amazon SNS, Plaid, eBay, Circle, Google, Kinde and Microsoft Entra publish the keys that they sign
with, and those are fetched from them: from Plaid, eBay and Circle with the credentials that are the
secret.

Where a request is rejected, the first line names the cause: the change to the body, the headers,
the URL or the secret with which it would have been verified, or else what it looks like.

The body must be the raw bytes of the request, unchanged to the last line break. Signed times are
judged by the clock, so a request from the past needs --now with the time of its arrival.

The exit status is 0 when the request is verified (or is a handshake that is answered), 1 when it is
rejected or cannot be decided now, because a key could not be fetched, and 2 when the command line,
the specification or a secret cannot be used.`

const verifyExample = `  hookonce verify --provider stripe --secret env:STRIPE_WEBHOOK_SECRET --body event.json \
      --now 1770091506 -H "Stripe-Signature: t=1770091506,v1=..."
  hookonce verify --spec acme.yaml --secret file:secret.txt --body event.json -H "X-Acme-Signature: ..."`

// verifyOptions are what the command line says.
type verifyOptions struct {
	provider, spec string
	secrets        []string
	token          string
	handshakes     bool
	now            string
	method, url    string
	signedURL      string
	headers        []string
	body           string
	json           bool
}

func newVerifyCommand(w *env) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:     "verify --provider NAME --secret SECRET --body FILE [flags]",
		Short:   "Say what a source would make of a captured request, and why",
		Long:    verifyHelp,
		Example: verifyExample,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v, err := o.verify(w)
			if v != nil {
				if written := o.write(w, v); written != nil {
					return written
				}
			}
			switch {
			case err != nil:
				return &usageError{c.CommandPath(), err}
			case v.Verified || v.Handshake != nil:
				return nil
			}
			return errors.New("the request is not verified: " + cmp.Or(v.Code, "it cannot be decided now"))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.provider, "provider", "", "`name` of the provider in the catalogue; see hookonce providers")
	f.StringVar(&o.spec, "spec", "", "`file` with a specification of your own, in place of --provider")
	f.StringArrayVar(&o.secrets, "secret", nil, "secret, as a `reference`: env:NAME, file:PATH, or the secret itself; may be repeated")
	f.StringVar(&o.now, "now", "", "time of arrival in `unix` seconds; the current time if not set")
	f.StringVar(&o.method, "method", http.MethodPost, "HTTP `method` of the request")
	f.StringVar(&o.url, "url", "", "`URL` that the provider called, with its query")
	declareSignedURL(f, &o.signedURL, "--url, without its query if the method is not POST")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "`header` of the request, as 'Name: value'; may be repeated")
	f.StringVar(&o.body, "body", "", "`file` with the raw body, - for standard input")
	f.BoolVar(&o.handshakes, "handshakes", false, "answer handshakes, as a source with handshakes: true does")
	f.StringVar(&o.token, "token", "", "token that handshakes ask for, as a `reference` like --secret; implies --handshakes")
	f.BoolVar(&o.json, "json", false, "write the result as JSON")
	return c
}

// verify looks at the request. Its errors are mistakes of whoever asks; with a secret of another form than the sender's comes what
// the request says of it.
func (o *verifyOptions) verify(w *env) (*verification, error) {
	known, err := specification(o.provider, o.spec)
	if err != nil {
		return nil, err
	}
	settings, err := o.settings(w)
	if err != nil {
		return nil, err
	}
	req, err := o.request(w)
	if err != nil {
		return nil, err
	}
	c := diagnose.Capture{Spec: known, Settings: settings, Request: req, Arrived: o.now != "", Environ: w.environ}
	c.Provider, err = build(known, o.spec, settings)
	switch {
	case errors.Is(err, spec.ErrSecret):
		v := &verification{Provider: known.Name, Secrets: len(settings.Secrets), Items: []verifiedItem{}, Reason: withoutPrefix(err)}
		v.explain(c.Why(err))
		return v, err
	case err != nil:
		return nil, err
	}
	return judge(c), nil
}

// withoutPrefix returns the text of an error about a secret without the flag that it came by.
func withoutPrefix(err error) string { return strings.TrimPrefix(err.Error(), "--secret: ") }

func (o *verifyOptions) settings(w *env) (spec.Settings, error) {
	s := spec.Settings{URL: o.registered(), Handshakes: o.handshakes || o.token != ""}
	if len(o.secrets) == 0 {
		return s, errors.New("--secret is missing: give env:NAME, file:PATH or the secret itself")
	}
	in := settings.Resolver{Environ: w.environ, ReadFile: os.ReadFile}
	for _, reference := range o.secrets {
		secret, err := in.Secret(reference)
		if err != nil {
			return s, fmt.Errorf("--secret: %w", err)
		}
		s.Secrets = append(s.Secrets, spec.Secret{Text: secret.Reveal()})
	}
	if o.token != "" {
		token, err := in.Secret(o.token)
		if err != nil {
			return s, fmt.Errorf("--token: %w", err)
		}
		s.Token = token.Reveal()
	}
	return s, nil
}

// registered returns the URL that is registered with the provider. It is the one that was called, but a
// challenge adds to the query of that.
func (o *verifyOptions) registered() string {
	if o.signedURL == "" && !strings.EqualFold(o.method, http.MethodPost) {
		return withoutQuery(o.url)
	}
	return cmp.Or(o.signedURL, o.url)
}

// request returns the captured request.
func (o *verifyOptions) request(w *env) (*hookonce.Request, error) {
	now := time.Now()
	if o.now != "" {
		seconds, err := strconv.ParseInt(o.now, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--now is %q; write the time of arrival in unix seconds, such as 1770091506", o.now)
		}
		now = time.Unix(seconds, 0)
	}
	header, err := parseHeaders(o.headers)
	if err != nil {
		return nil, err
	}
	req := &hookonce.Request{Method: strings.ToUpper(o.method), URL: o.url, Header: header, Now: now}
	switch {
	case o.body == "-":
		req.Body, err = io.ReadAll(w.in)
	case o.body != "":
		req.Body, err = os.ReadFile(o.body)
	case req.Method == http.MethodPost:
		err = errors.New("is missing: name the file with the raw body, or - for standard input")
	}
	if err != nil {
		return nil, fmt.Errorf("--body: %w", err)
	}
	return req, nil
}

// write writes the result.
func (o *verifyOptions) write(w *env, v *verification) error {
	if o.json {
		return printJSON(w, v)
	}
	v.print(w.out)
	return nil
}

// verification is what a source would make of a request.
type verification struct {
	Verified bool `json:"verified"`
	// Reason is why the request is rejected, or why no event can be read from one that is verified.
	Reason string `json:"reason"`
	// Code is one of hookonce's closed set of reasons.
	Code string `json:"code,omitempty"`
	// Cause is one of the words of package diagnose, Explanation what it means here, and Hint what to do. Proven says that the
	// request was verified without what the word names.
	Cause       diagnose.Word `json:"cause,omitempty"`
	Explanation string        `json:"explanation,omitempty"`
	Proven      bool          `json:"proven,omitempty"`
	Hint        string        `json:"hint,omitempty"`

	Provider string `json:"provider"`
	// Covers says what the signature binds, and Secret is the number of the one that matched.
	Covers    string          `json:"covers,omitempty"`
	Secret    int             `json:"secret,omitempty"`
	Secrets   int             `json:"secrets"`
	Items     []verifiedItem  `json:"items"`
	Handshake *verifiedAnswer `json:"handshake,omitempty"`
	Answer    verifiedAnswer  `json:"answer"`
}

// verifiedItem is one event.
type verifiedItem struct {
	Key               string     `json:"key"`
	KeySource         string     `json:"key_source"`
	KeySigned         bool       `json:"key_signed"`
	Type              string     `json:"type"`
	Resource          string     `json:"resource,omitempty"`
	Time              *time.Time `json:"time,omitempty"`
	Tenant            string     `json:"tenant,omitempty"`
	AttemptID         string     `json:"attempt_id,omitempty"`
	Attempt           string     `json:"sender_attempt,omitempty"`
	Cause             string     `json:"sender_reason,omitempty"`
	Logical           string     `json:"logical_key,omitempty"`
	LogicalDuplicates string     `json:"logical_duplicates,omitempty"` // what the gateway does with another event of that logical key
	Version           string     `json:"version,omitempty"`
	OnRepeat          string     `json:"on_repeat"`
	Repeat            string     `json:"repeat"`
	OnRetry           string     `json:"stable_on_retry,omitempty"`
	OnResend          string     `json:"stable_on_resend,omitempty"`
}

// verifiedAnswer is an HTTP response.
type verifiedAnswer struct {
	Status      int               `json:"status"`
	ContentType string            `json:"content_type,omitempty"`
	Body        string            `json:"body,omitempty"`
	Header      map[string]string `json:"header,omitempty"`
}

func newAnswer(a hookonce.Answer) verifiedAnswer {
	return verifiedAnswer{a.Status, a.ContentType, string(a.Body), a.Header}
}

// judge opens the request and says what came of it.
func judge(c diagnose.Capture) *verification {
	p, req := c.Provider, c.Request
	v := &verification{Provider: p.Name(), Secrets: len(c.Settings.Secrets), Items: []verifiedItem{}}
	d, err := p.Open(req)
	if err != nil {
		v.refuse(p, err)
		v.explain(c.Why(err))
	} else {
		v.accept(p, d)
	}
	if v.Hint == "" || v.Code != "" && !v.Proven {
		v.suspectHandshake(c)
	}
	return v
}

// suspectHandshake says so if the request would be answered, or refused for its token, if handshakes were enabled.
func (v *verification) suspectHandshake(c diagnose.Capture) {
	if v.Handshake != nil || c.Settings.Handshakes || !looksLikeHandshake(c.Provider.Spec(), c.Settings, c.Request) {
		return
	}
	v.Hint = "try --handshakes, and --token if it asks for one: handshakes are answered where they are enabled"
	if v.Code != "" {
		v.explain(diagnose.Cause{Word: diagnose.Challenge, Text: "this looks like a handshake, and those are not answered here", Mend: v.Hint})
	}
}

// explain fills in what is behind a rejection.
func (v *verification) explain(c diagnose.Cause) {
	v.Cause, v.Explanation, v.Proven, v.Hint = c.Word, c.Text, c.Proven, c.Mend
}

// accept fills in what a verified request or a handshake carries.
func (v *verification) accept(p *spec.Provider, d *hookonce.Verified) {
	v.Verified, v.Covers, v.Secret = d.Proof.Secret > 0, d.Proof.Covers, d.Proof.Secret
	v.Answer = newAnswer(p.Profile().Acknowledgement)
	switch {
	case d.Handshake != nil:
		v.Answer = newAnswer(*d.Handshake)
		v.Handshake = &v.Answer
		if !v.Verified {
			v.Reason = "a handshake that the sender does not sign: it is answered, nothing is verified and nothing is stored"
		}
	case d.Unreadable != nil:
		v.Reason = d.Unreadable.Error()
		key := "without a key"
		if d.Events[0].Key != "" {
			key = "with the key that its header has"
		}
		v.Hint = "the signature is valid, so the request would be passed on as one event " + key + ": nothing is lost"
	default:
		for i := range d.Events {
			v.Items = append(v.Items, newItem(p.Spec(), &d.Events[i]))
		}
	}
}

// refuse fills in why the request is not authentic, or why that cannot be decided.
func (v *verification) refuse(p *spec.Provider, err error) {
	profile := p.Profile()
	var rej *hookonce.RejectError
	if !errors.As(err, &rej) {
		v.Reason, v.Answer.Status = err.Error(), profile.Refusal(http.StatusServiceUnavailable, err)
		return
	}
	v.Reason, v.Code, v.Answer.Status = rej.Error(), rej.Reason, profile.Refusal(http.StatusUnauthorized, err)
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
	return err == nil && d.Handshake != nil
}

func newItem(known spec.Spec, ev *hookonce.Event) verifiedItem {
	item := verifiedItem{
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
		item.LogicalDuplicates = logicalDuplicatesOf(known, ev.Type)
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

// logicalDuplicatesOf says what the gateway does with another event with the same logical key.
func logicalDuplicatesOf(known spec.Spec, eventType string) string {
	for _, l := range known.Dedup.Logical {
		if l.Mode == spec.DropLogicalDuplicate && slices.Contains(l.Types, eventType) {
			return string(spec.DropLogicalDuplicate)
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

// print writes the result for people.
func (v *verification) print(out io.Writer) {
	switch {
	case v.Verified:
		fmt.Fprintf(out, "verified as %s: %s; secret %d of %d matched\n", v.Provider, covered(v.Covers), v.Secret, v.Secrets)
	case v.Handshake != nil:
		fmt.Fprintf(out, "handshake of %s\n", v.Provider)
	case v.Code == "" && v.Cause == "":
		fmt.Fprintf(out, "not decided, as %s\n", v.Provider)
	default:
		fmt.Fprintf(out, "rejected as %s: %s\n", v.Provider, v.Explanation)
	}
	line(out, "do", v.Hint)
	line(out, "why", strings.TrimPrefix(v.Reason, v.Code+": "))
	line(out, "reason", v.Code)
	for i := range v.Items {
		fmt.Fprintf(out, "\nevent %d of %d\n", i+1, len(v.Items))
		v.Items[i].print(out)
	}
	if v.Verified && v.Handshake == nil && v.Reason == "" && len(v.Items) == 0 {
		line(out, "events", "none: an empty batch is acknowledged")
	}
	if v.Answer.Status != 0 {
		fmt.Fprintln(out)
		line(out, "answer", v.Answer.String())
	}
}

func (e *verifiedItem) print(out io.Writer) {
	if e.Key == "" {
		line(out, "key", "none: the event is unkeyed")
	} else {
		line(out, "key", e.Key)
		line(out, "", "from "+e.KeySource+", "+signedText(e.KeySigned))
	}
	line(out, "type", e.Type)
	line(out, "resource", e.Resource)
	if e.Time != nil {
		line(out, "time", e.Time.UTC().Format(time.RFC3339Nano))
	}
	line(out, "tenant", e.Tenant)
	line(out, "attempt id", e.AttemptID)
	line(out, "attempt", e.Attempt)
	line(out, "cause", e.Cause)
	line(out, "version", e.Version)
	if e.Logical != "" {
		line(out, "logical", e.Logical)
		line(out, "", logicalDuplicatesText(e.LogicalDuplicates))
	}
	line(out, "repeat", e.Repeat)
	if e.Key != "" {
		line(out, "", "same key in retries: "+stated(e.OnRetry)+"; when sent again by hand: "+stated(e.OnResend))
	}
}

// line writes a label and a text, and nothing where there is no text.
func line(out io.Writer, label, text string) {
	if text != "" {
		fmt.Fprintf(out, "  %-9s %s\n", label, text)
	}
}

// String writes the answer on one line. What a stranger chose is quoted: it could steer a terminal.
func (a verifiedAnswer) String() string {
	text := fmt.Sprint(a.Status)
	if a.ContentType != "" {
		text += " " + a.ContentType
	}
	if a.Body != "" {
		text += fmt.Sprintf(" %q", a.Body)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		text += fmt.Sprintf(" %s: %q", name, a.Header[name])
	}
	return text
}

// logicalDuplicatesText says what becomes of another event with the same logical key.
func logicalDuplicatesText(mode string) string {
	if mode == string(spec.DropLogicalDuplicate) {
		return "another event with this logical key is stored by the gateway and not delivered; the library passes it on"
	}
	return "another event with this logical key passes on; the gateway marks it with Hookonce-Logical-Duplicate-Of, or drops it where its source lists the type under logical_duplicates: {drop: [...]}"
}

func signedText(signed bool) string {
	if signed {
		return "which the signature covers"
	}
	return "which is not signed"
}

// covered says what a signature binds.
func covered(covers string) string {
	switch covers {
	case "body":
		return "the signature covers the whole body"
	case "fields":
		return "the signature covers some fields of the body, and others could be changed"
	case "nonce":
		return "the signature covers nothing of the body, which could be changed"
	case "crc32":
		return "the signature covers a checksum of the body, which another body can meet"
	}
	return "a secret was sent along, and nothing is signed"
}

func stated(stability string) string {
	if stability == "" {
		return "not stated"
	}
	return stability
}
