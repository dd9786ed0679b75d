// Package header is what hookonce knows about header fields: which names are the same to whom, which belong to one
// connection and which are its own (name.go, own.go), which of a provider's request are kept with an event and reach the
// application (rule.go, fit.go, deny.go), the form in which stores keep them (lines.go), and what they say of where a request
// comes from (local.go).
package header
