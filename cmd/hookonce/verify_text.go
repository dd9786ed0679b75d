package main

import (
	"fmt"
	"io"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// print writes the verdict for people.
func (v *verdict) print(out io.Writer) {
	switch {
	case v.Verified:
		fmt.Fprintf(out, "verified as %s: %s; secret %d of %d matched\n", v.Provider, covered(v.Covers), v.Secret, v.Secrets)
	case v.Handshake != nil:
		fmt.Fprintf(out, "handshake of %s\n", v.Provider)
	case v.Code == "":
		fmt.Fprintf(out, "not decided, as %s\n", v.Provider)
	default:
		fmt.Fprintf(out, "rejected as %s\n", v.Provider)
	}
	line(out, "why", v.Reason)
	line(out, "hint", v.Hint)
	for i := range v.Items {
		fmt.Fprintf(out, "\nevent %d of %d\n", i+1, len(v.Items))
		v.Items[i].print(out)
	}
	if v.Verified && v.Handshake == nil && v.Reason == "" && len(v.Items) == 0 {
		line(out, "events", "none: an empty batch is acknowledged")
	}
	fmt.Fprintln(out)
	line(out, "answer", v.Answer.String())
}

func (e *verdictItem) print(out io.Writer) {
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
		line(out, "twins", e.Logical)
		line(out, "", twinsText(e.Twins))
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
func (a verdictAnswer) String() string {
	text := fmt.Sprint(a.Status)
	if a.ContentType != "" {
		text += " " + a.ContentType
	}
	if a.Body != "" {
		text += fmt.Sprintf(" %q", a.Body)
	}
	return text
}

// twinsText says what becomes of another event with the same logical key.
func twinsText(mode string) string {
	if mode == string(spec.DropTwin) {
		return "another event with this logical key is stored by the gateway and not delivered; the library passes it on"
	}
	return "another event with this logical key passes on; the gateway marks it with Hookonce-Twin-Of, or drops it where its source lists the type under twins: {drop: [...]}"
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
