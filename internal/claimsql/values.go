package claimsql

import "strings"

// MaxField is what a value in PostgreSQL can hold, less what else is in the message that brings it.
// https://www.postgresql.org/docs/current/limits.html
const MaxField = 1<<30 - 1<<16

// Storable returns text without what PostgreSQL refuses. An event's type is only for people who look at the table: a
// strange one must not make the event impossible to handle.
func Storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// Present returns b in a form that no driver takes for null.
func Present(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
