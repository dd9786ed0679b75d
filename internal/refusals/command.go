package refusals

import (
	"slices"
	"strconv"
	"strings"
)

// Command returns the command that says why a request was not verified, with what is known of it, and in capitals what
// is to be filled in: the file with the body as it was captured, or as the sender shows it, and the values of headers. It
// is empty where the request was refused for another reason. Provider is the name of the source's, and custom says that it
// is a specification of one's own, from a file.
func (r *Refusal) Command(provider string, custom bool) string {
	if !r.Unverified || !word(provider) {
		return ""
	}
	of := "--provider " + provider
	if custom {
		of = "--spec SPECIFICATION"
	}
	words := []string{"hookonce verify", of, "--secret " + secretReference(r.Source), "--now " + strconv.FormatInt(r.At.Unix(), 10)}
	if r.Method == "POST" {
		words = append(words, "--body FILE")
	} else if word(r.Method) {
		words = append(words, "--method "+r.Method)
	}
	for _, name := range r.Headers {
		if word(name) && !slices.Contains(idle, strings.ToLower(name)) {
			words = append(words, "-H '"+name+": VALUE'")
		}
	}
	return strings.Join(words, " ")
}

// idle are headers that no signature is in or about. X-Request-Id is not among them: Mercado Pago signs it.
var idle = []string{"accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-length", "cookie", "date", "expect",
	"forwarded", "host", "pragma", "te", "traceparent", "tracestate", "transfer-encoding", "user-agent", "via", "x-forwarded-for",
	"x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-forwarded-server", "x-real-ip"}

// word reports whether a text can stand in a command as it is: strangers choose the names of headers and methods, which
// may have in them what a shell acts on.
func word(s string) bool {
	return s != "" && s[0] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// secretReference is where a secret of the source might be.
func secretReference(source string) string {
	return "env:" + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(source)) + "_SECRET"
}
