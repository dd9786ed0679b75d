// Package oracle compares the catalogue of providers with the libraries that the senders themselves
// publish. It has tests and benchmarks only.
//
// For every library: what it signs, the catalogue verifies; what the catalogue signs, it accepts; and
// both give the same verdict on requests that were changed, except for the differences that
// the library's adapter lists with their reasons.
//
// The same is asked of the libraries that senders publish for Node, see node/senders.mjs. Every library accepts the
// samples that hookonce send and hammer send.
//
// What the gateway delivers is verified with the libraries of Standard Webhooks for Go and for Node. Applications that
// were written for their provider alone, with its library, stand behind the gateway and get events that waited for a
// week: see node/apps.mjs.
package oracle
