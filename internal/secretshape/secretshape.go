// Package secretshape says what a text is that stands in the place of a secret, by its shape alone: quotes that came along
// with it, the name of a variable, a placeholder, a key for something else. It is the one place that knows these shapes, for
// the check of a configuration and for people who ask why a request is not verified.
//
// Whether a secret is the right one no shape can tell.
package secretshape

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/hookonce/hookonce/provider/spec"
)

// Kind names what a text is in place of the secret. The set is closed.
type Kind string

// The kinds.
const (
	Spaces      Kind = "spaces"       // white space, or something else that is not seen, around the secret
	Quoted      Kind = "quoted"       // quotes around it
	Assignment  Kind = "assignment"   // the line of a file with variables: NAME=secret
	Variable    Kind = "variable"     // the name of a variable in place of its value
	Placeholder Kind = "placeholder"  // the text that stands in documentation in the place of a secret
	PrefixOnly  Kind = "prefix_only"  // the beginning that all secrets of the sender have, and nothing more
	APIKey      Kind = "api_key"      // a key to call an API with
	WrongKey    Kind = "wrong_key"    // a key in PEM where none is wanted, or a private one
	Address     Kind = "address"      // a URL
	OtherSender Kind = "other_sender" // the webhook secret of another sender
)

// Finding is what a text is in place of a secret. Its texts hold nothing of the secret but a beginning that all of its kind
// have.
type Finding struct {
	Kind Kind
	// Text says what it is, as the rest of a sentence that begins with the secret: "has quotes around it".
	Text string
	// Mend says what to do.
	Mend string
	// Sure is set if it cannot be the right secret of this sender. Else it may be one that somebody chose to look like this.
	Sure bool
	// Core is what is left of the text without what is around it, empty if it is nothing that could be the secret. It is for
	// being tried, and not for being shown.
	Core string
}

// Look returns what a text is in place of the secret of a sender, and whether it is anything but that. Of the environment, in the
// form of os.Environ, the names count.
func Look(text string, environ []string, known spec.Spec) (Finding, bool) {
	for _, look := range []func(string, []string, spec.Spec) (Finding, bool){
		spaces, assignment, quoted, variable, placeholder, prefixOnly, wrongKey, address, apiKey, otherSender,
	} {
		if f, ok := look(text, environ, known); ok {
			return f, true
		}
	}
	return Finding{}, false
}

// unseen are characters without a width, which copying from a page can bring along: the byte order mark, and spaces and joiners
// that take no room.
const unseen = "\ufeff\u200b\u200c\u200d\u2060"

// spaces finds what is around a secret and is not seen. PEM is a text of several lines.
func spaces(text string, _ []string, _ spec.Spec) (Finding, bool) {
	core := strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(unseen, r) })
	if core == text || isPEM(core) && strings.TrimSpace(text) == core {
		return Finding{}, false
	}
	f := Finding{Kind: Spaces, Text: "has white space or a line break around it", Mend: "remove it; file: leaves out one line break at the end, and nothing else", Sure: true, Core: core}
	if strings.TrimSpace(text) == text {
		f.Text, f.Mend = "has a character around it that is not seen, such as a byte order mark", "type its first and last character anew"
	}
	return f, true
}

// quotes are the pairs that come along with what stands between them.
var quotes = [][2]string{{`\"`, `\"`}, {`"`, `"`}, {"'", "'"}, {"`", "`"}, {"“", "”"}, {"‘", "’"}}

func quoted(text string, _ []string, known spec.Spec) (Finding, bool) {
	for _, q := range quotes {
		inner, left := strings.CutPrefix(text, q[0])
		core, right := strings.CutSuffix(inner, q[1])
		if left && right && len(core) > 0 {
			return Finding{Quoted, "has quotes around it", "remove them; env: and file: take every character, and files for docker --env-file keep quotes", !known.OwnSecret, core}, true
		}
		if left != strings.HasSuffix(text, q[1]) && q[0] != "'" && q[0] != "‘" {
			return Finding{Quoted, "has a quote on one of its ends", "remove it", false, strings.TrimSuffix(inner, q[1])}, true
		}
	}
	return Finding{}, false
}

var assigned = regexp.MustCompile(`^(?:export\s+|set\s+)?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\s*([=:])\s*(\S.*)$`)

func assignment(text string, _ []string, known spec.Spec) (Finding, bool) {
	m := assigned.FindStringSubmatch(text)
	if m == nil || m[1] == ":" && isBasic(known) {
		return Finding{}, false
	}
	core := m[2]
	if f, ok := quoted(core, nil, known); ok {
		core = f.Core
	}
	return Finding{Assignment, "has the name of a variable in front of it, as in NAME=secret", "give what follows the =", !known.OwnSecret, core}, true
}

// isBasic reports whether the secret is user:password.
func isBasic(known spec.Spec) bool {
	return slices.ContainsFunc(known.Verify, func(v spec.Verify) bool { return v.Kind == spec.Basic })
}

var (
	variableName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	telling      = regexp.MustCompile(`_(?:SECRET|SECRETS|KEY|TOKEN|PASSWORD|WEBHOOK|SIGNATURE|SIGNING)(?:_|$)|^(?:SECRET|WEBHOOK|SIGNING)_`)
	expression   = regexp.MustCompile(`^(?:\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|%[A-Za-z_][A-Za-z0-9_]*%|\$\{\{.*\}\}|\{\{.*\}\}|process\.env\.\w+|ENV\[.*\]|os\.(?:environ|getenv|Getenv)\W.*|secrets\.\w+)$`)
)

// variable finds the name of a variable. A name without a telling word counts only if there is such a variable.
func variable(text string, environ []string, _ spec.Spec) (Finding, bool) {
	const mend = "write env: and the name of the variable"
	switch {
	case expression.MatchString(text):
		return Finding{Kind: Variable, Text: "is the expression for a variable, which nothing put its value for", Mend: mend, Sure: true}, true
	case !variableName.MatchString(text):
	case slices.ContainsFunc(environ, func(one string) bool { return strings.HasPrefix(one, text+"=") }):
		return Finding{Kind: Variable, Text: "is the name of an environment variable, and not its value", Mend: mend, Sure: true}, true
	case telling.MatchString(text):
		return Finding{Kind: Variable, Text: "looks like the name of a variable, and not like its value", Mend: mend, Sure: true}, true
	}
	return Finding{}, false
}

// beginnings are what secrets begin with, by the sender that hands them out. See Spec.Secret.
var beginnings = map[string]string{"stripe": "whsec_", "paddle": "pdl_ntfset_"}

// Beginning returns what every secret of the sender begins with, empty if nothing is known of that.
func Beginning(known spec.Spec) string { return beginnings[known.Name] }

// prefixes are beginnings that say nothing by themselves.
var prefixes = []string{"v1,whsec_", "whsec_", "whpk_", "pdl_ntfset_", "shpss_", "sha256=", "sha1=", "Bearer", "Basic"}

func prefixOnly(text string, _ []string, _ spec.Spec) (Finding, bool) {
	if slices.Contains(prefixes, text) {
		return Finding{Kind: PrefixOnly, Text: "is nothing but " + text + ", with which others begin", Mend: "give all of it: it was cut off after its beginning", Sure: true}, true
	}
	return Finding{}, false
}

var (
	placeholderWord = regexp.MustCompile(`(?i)^(?:change[-_ ]?(?:me|this|it)|replace[-_ ]?(?:me|this|with.*)|insert[-_ ].*|(?:put|add|paste)[-_ ](?:your|the)[-_ ].*|<[^<>]*>|\[[^\[\]]*\]|x{4,}|\*{3,}|•{3,}|\.{3,}|…|todo|tbd|dummy|foobar|example|placeholder|(?:my|your|the)[-_ ]?(?:[a-z]+[-_ ]){0,4}(?:secret|key|token|password)(?:[-_ ]?here)?|(?:secret|key|token|password)[-_ ]?here|webhook[-_ ]?secret|signing[-_ ]?secret)$`)
	masked          = regexp.MustCompile(`\.{3}|…|\*{4,}|•{3,}`)
)

// placeholder finds texts that stand for a secret in documentation, or for its middle on a page that hides it.
func placeholder(text string, _ []string, known spec.Spec) (Finding, bool) {
	core := text
	for _, prefix := range prefixes {
		core = strings.TrimPrefix(core, prefix)
	}
	switch {
	case placeholderWord.MatchString(core):
		return Finding{Kind: Placeholder, Text: "is a placeholder, and everybody knows it", Mend: "give " + wanted(known), Sure: true}, true
	case masked.MatchString(core) && !known.OwnSecret:
		return Finding{Kind: Placeholder, Text: "is the form in which a page hides a secret", Mend: "have the page show it, and copy all of it", Sure: true}, true
	}
	return Finding{}, false
}

func isPEM(text string) bool { return strings.Contains(text, "-----BEGIN ") }

// wrongKey finds keys in PEM where they cannot be right.
func wrongKey(text string, _ []string, known spec.Spec) (Finding, bool) {
	f := Finding{Kind: WrongKey, Sure: true}
	switch {
	case !isPEM(text):
		return f, false
	case strings.Contains(text, "PRIVATE KEY-----"):
		f.Text, f.Mend = "is a private key, which belongs to the sender alone", "give "+wanted(known)
	case strings.Contains(text, `\n`) && !strings.Contains(text, "\n"):
		f.Text, f.Mend, f.Core = `is a key in PEM whose line breaks are written as \n`, "give it with line breaks, such as by file:PATH", strings.ReplaceAll(text, `\n`, "\n")
	case !takesPEM(known):
		f.Text, f.Mend, f.Core = "is a key in PEM, and none is wanted", "give "+wanted(known), armoured(text)
	default:
		return f, false
	}
	return f, true
}

// armoured returns what stands between the first and the last line of a text in PEM, on one line.
func armoured(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// takesPEM reports whether a way of signing has a key that may be in PEM. What code does with its secret is not known.
func takesPEM(known spec.Spec) bool {
	return len(known.Verify) == 0 || slices.ContainsFunc(known.WithDefaults().Verify, func(v spec.Verify) bool {
		shared, is := v.Scheme.(spec.Imitator)
		return v.Key == spec.KeyPEM || v.Kind == spec.JWT || v.Kind == spec.Code && (!is || !shared.Imitable())
	})
}

func address(text string, _ []string, known spec.Spec) (Finding, bool) {
	scheme, _, is := strings.Cut(text, "://")
	if !is || scheme != "https" && scheme != "http" || strings.Contains(known.Secret, scheme+"://") { // which shows one
		return Finding{}, false
	}
	return Finding{Kind: Address, Text: "is a URL", Mend: "give " + wanted(known), Sure: !known.OwnSecret}, true
}

// wanted says what the secret is, and where its sender shows it as far as that is known.
func wanted(known spec.Spec) string {
	text := known.WithDefaults().Secret
	if at := shownAt[known.Name]; at != "" {
		text += "; " + at
	}
	return text
}

// shownAt says where a sender shows its secret, for those whose other keys are often taken for it.
var shownAt = map[string]string{
	"shopify": "the Dev Dashboard shows it under the app's Settings",                                            // stated: shopify.dev, Client secrets
	"slack":   "the app's page shows it under Basic Information, App Credentials, Signing Secret",               // reported: Zowe documentation, Installing the Slack App
	"stripe":  "the dashboard shows it on the page of the endpoint, and stripe listen --print-secret its own",   // reported: pay-rails/pay: docs/stripe/2_credentials.md
	"twilio":  "the console shows it beside the account SID; a secondary one signs nothing until it is primary", // stated: Twilio documentation, Error 57012
}
