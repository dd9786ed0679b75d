package provider

import (
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// bodyMAC is the plainest scheme: an HMAC-SHA256 of the body under the secret as it is, in a header.
func bodyMAC(header, prefix string, e spec.Encoding) spec.Verify {
	return spec.Verify{
		Hash:      spec.SHA256,
		Key:       spec.KeyUTF8,
		Encoding:  e,
		Signature: spec.Signature{In: spec.Value("header:" + header), Prefix: prefix},
		Sign:      []spec.Value{"body"},
	}
}

// timedMAC is the scheme that many have from Stripe: t=<time>,v1=<HMAC-SHA256 of time, dot and
// body in hexadecimal>. A tolerance of zero enforces nothing.
func timedMAC(header string, unit spec.Unit, tolerance time.Duration) spec.Verify {
	return spec.Verify{
		Hash:      spec.SHA256,
		Key:       spec.KeyUTF8,
		Encoding:  spec.Hex,
		Signature: spec.Signature{In: spec.Value("header:" + header), Split: ",", Prefix: "v1="},
		Time:      &spec.Timestamp{In: "part:t=", Unit: unit, Past: tolerance, Future: tolerance},
		Sign:      []spec.Value{"ts", "const:.", "body"},
	}
}
