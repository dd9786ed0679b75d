// Package provider knows the senders of webhooks: how each one signs a request, which key recognises
// an event when it comes again, and how it wants to be answered.
//
// # Choosing a provider
//
// Most programs need one constructor, and hand its result to hookonce.Webhook:
//
//	hookonce.Webhook(store, "stripe", provider.Stripe(secret), handler)
//
// There is one for each sender with a scheme of its own, such as [Stripe], [Adyen] and [Twilio].
// [HMAC] is for senders that are not in the catalogue, and [Hookonce] for applications behind
// hookonce's own gateway. Constructors take several secrets while a secret is being rotated, and panic
// when a secret is missing or has the wrong form, because that is a mistake in the program and not in a
// request.
//
// Programs that read names and secrets from a configuration use [Build], which returns an error
// instead. It also has the senders that use Standard Webhooks or Svix under their own name, which have
// no constructor.
//
// # The catalogue
//
// A provider is data: a [spec.Spec] states in values what to verify, where the key is and what to answer.
// [spec.New] checks the specification and compiles it once; nothing of it is parsed while requests are
// served. [Lookup] returns the specification of a provider in the catalogue, and [Names] lists them.
//
// # Where is what
//
// Each sender has a file of its own, named after it. The other files are few:
//
//   - catalogue.go lists the senders, and has [Lookup], [Names] and [Build];
//   - aliases.go has those that send as another does, under their own name;
//   - standard.go, hmac.go and hookonce.go are for senders of which there are many;
//   - shorthand.go has what specifications have in common.
//
// What data cannot express is code, in internal/scheme, which fetches keys and certificates with internal/remotekeys.
//
// # What is safe
//
// Signatures are checked over the raw bytes of the body, in constant time, with every secret and
// every signature that the header carries. A rejection names the header, the part and the expected
// shape, and never a secret nor the expected signature.
//
// A key that is missing, empty, of another type than string, number or boolean, or present twice with
// different values is no key: the event is passed on unkeyed, because losing an event is worse than
// repeating one.
//
// # What a program carries
//
// The whole catalogue links two modules that look values up in JSON (gjson and sjson, with what those
// link) and golang.org/x/text, and no other.
package provider
