package provider

import (
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// What the senders have in common: parts of their specifications, and how constructors are made of them.

// The units of time that deadlines, windows and tolerances are written in.
const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
	day    = 24 * time.Hour
)

// must is for constructors whose arguments are written into a program.
func must(p *spec.Provider, err error) *spec.Provider {
	if err != nil {
		panic(err)
	}
	return p
}

// at is a time in an event.
func at(in spec.Value, unit spec.Unit) spec.Moment { return spec.Moment{In: in, Unit: unit} }

// stated, reported and notSourced say how well facts are sourced. See [spec.Confidence].
func stated(fact, where string) spec.Source {
	return spec.Source{Fact: fact, Confidence: spec.Stated, Where: where}
}

func reported(fact, where string) spec.Source {
	return spec.Source{Fact: fact, Confidence: spec.Reported, Where: where}
}

func notSourced(fact string) spec.Source {
	return spec.Source{Fact: fact, Confidence: spec.NotSourced}
}

// headerMAC is an HMAC-SHA256 of those values under the secret as it is, in a header.
func headerMAC(header, prefix string, e spec.Encoding, sign ...spec.Value) spec.Verify {
	return spec.Verify{
		Hash:      spec.SHA256,
		Key:       spec.KeyUTF8,
		Encoding:  e,
		Signature: spec.Signature{In: spec.Value("header:" + header), Prefix: prefix},
		Sign:      sign,
	}
}

// bodyMAC is the plainest scheme: the HMAC is that of the body.
func bodyMAC(header, prefix string, e spec.Encoding) spec.Verify {
	return headerMAC(header, prefix, e, "body")
}

// timed returns a way of signing with the time that it signs. A tolerance of zero enforces nothing.
func timed(v spec.Verify, in spec.Value, unit spec.Unit, tolerance time.Duration) spec.Verify {
	v.Time = &spec.Timestamp{In: in, Unit: unit, Past: tolerance, Future: tolerance}
	return v
}

// signedOnce returns a way of signing whose time may be as old as the sender's last retry, for senders of which nobody says
// that a retry is signed anew: one that carries the time of the first attempt would be refused for its age, and the event
// lost. What its tolerance is for, clocks that differ, comes on top.
func signedOnce(v spec.Verify, retry time.Duration) spec.Verify {
	at := *v.Time
	at.Past += retry
	v.Time = &at
	return v
}

// onceOrAnew is the gap that [signedOnce] is for, as sources admit it.
const onceOrAnew = "whether a retry is signed anew; the tolerance covers the retries in case it is not"

// assumed marks that gap where the tolerance stays as short as the sender says: the source says why.
const assumed = "which the tolerance assumes"

// timedMAC is the scheme that many have from Stripe: t=<time>,v1=<HMAC-SHA256 of time, dot and body in hexadecimal>.
func timedMAC(header string, unit spec.Unit, tolerance time.Duration) spec.Verify {
	v := timed(headerMAC(header, "v1=", spec.Hex, "ts", "const:.", "body"), "part:t=", unit, tolerance)
	v.Signature.Split = ","
	return v
}
