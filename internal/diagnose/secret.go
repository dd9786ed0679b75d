package diagnose

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hookonce/hookonce/internal/secretshape"
	"github.com/hookonce/hookonce/provider/spec"
)

// maxSecrets is how many texts are tried in the place of the secrets that are given.
const maxSecrets = 160

// secrets returns the secrets that are given, and after them what each of them may have been before it was changed, simple
// changes first. Not all of them have a form that the sender has.
func (s *search) secrets() (all []candidate) {
	seen := map[string]bool{}
	add := func(c candidate) {
		if !seen[c.text] && len(all) < maxSecrets && len(c.text) <= 64<<10 {
			seen[c.text] = true
			all = append(all, c)
		}
	}
	for _, secret := range s.Settings.Secrets {
		add(candidate{text: secret.Text})
	}
	for begin, depth := 0, 0; depth < 2; depth++ {
		end := len(all)
		for _, from := range all[begin:end] {
			for _, to := range s.edits(from.text) {
				add(candidate{to.text, joined(from.notes, to.notes)})
			}
		}
		begin = end
	}
	return all
}

// count returns how many of the candidates are secrets as they were given.
func (s *search) count(all []candidate) int {
	if n := slices.IndexFunc(all, func(c candidate) bool { return len(c.notes) > 0 }); n >= 0 {
		return n
	}
	return len(all)
}

// joined returns notes with others behind them, unless these say the same.
func joined(notes, more []note) []note {
	notes = slices.Clone(notes)
	for _, n := range more {
		if !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	return notes
}

// words are what is said of a secret that has a certain shape.
var words = map[secretshape.Kind]Word{
	secretshape.Spaces: SecretSpaces, secretshape.Quoted: SecretQuoted, secretshape.Assignment: SecretVariable, secretshape.Variable: SecretVariable,
	secretshape.Placeholder: SecretPlaceholder, secretshape.PrefixOnly: SecretPrefix, secretshape.APIKey: SecretKind, secretshape.WrongKey: SecretKind,
	secretshape.Address: SecretKind, secretshape.OtherSender: SecretKind,
}

// edits returns what a secret may have been before one thing happened to it.
func (s *search) edits(text string) (all []candidate) {
	add := func(word Word, is, mend, was string) {
		if was != "" && was != text {
			all = append(all, candidate{was, []note{{word, "the secret " + is, mend}}})
		}
	}
	if f, ok := secretshape.Look(text, s.Environ, s.Spec); ok {
		add(words[f.Kind], f.Text, f.Mend, f.Core)
	}
	if value, ok := s.variable(text); ok {
		add(SecretVariable, "is the name of an environment variable, and its value is the right one", "write env: in front of the name", value)
	}
	beginnings := []string{"whsec_", "v1,whsec_"}
	if b := secretshape.Beginning(s.Spec); b != "" && !slices.Contains(beginnings, b) {
		beginnings = append(beginnings, b)
	}
	for _, begin := range append([]string{"v1,", "Bearer ", "bearer ", "Basic ", "Token ", "sha256="}, beginnings...) {
		if was, ok := strings.CutPrefix(text, begin); ok {
			add(SecretPrefix, "begins with "+strings.TrimSpace(begin)+", which is not a part of it", "leave that away", was)
		}
	}
	for _, begin := range beginnings {
		add(SecretPrefix, "lacks its beginning "+begin, "give the whole text, as the sender shows it", begin+text)
	}
	s.decoded(text, add)
	encoded(text, add)
	add(SecretEncoding, "was changed to small letters, or to capital ones", "copy it as it is", swapCase(text))
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", ;\n", r) }) {
		add(SecretSeveral, "is one of several in the text that is given", "give each of them by itself: --secret may be repeated", part)
	}
	if user, password, ok := strings.Cut(text, ":"); ok {
		add(SecretParts, "has its two parts swapped", "write the other one first", password+":"+user)
		add(SecretParts, "is only what follows the colon of the text that is given", "leave away what stands before it", password)
		add(SecretParts, "is only what stands before the colon of the text that is given", "leave away what follows it", user)
	}
	return all
}

// variable returns the value of the environment variable of that name.
func (s *search) variable(name string) (string, bool) {
	for _, one := range s.Environ {
		if value, ok := strings.CutPrefix(one, name+"="); ok && name != "" {
			return value, value != ""
		}
	}
	return "", false
}

// decoded adds what a text was before somebody encoded it.
func (s *search) decoded(text string, add func(Word, string, string, string)) {
	const as = "give it as the sender shows it"
	unpadded := strings.TrimRight(text, "=")
	for _, by := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if was, err := by.DecodeString(unpadded); err == nil {
			add(SecretEncoding, "was encoded in base64 once more", "decode it, as for a secret of Kubernetes, or "+as, string(was))
			add(SecretEncoding, "was encoded in base64 once more, with a line break at its end", "decode it without its line break, or "+as, strings.TrimRight(string(was), "\r\n"))
		}
	}
	if was, err := hex.DecodeString(text); err == nil {
		add(SecretEncoding, "was encoded in hexadecimal once more", as, string(was))
	}
	if was, err := url.PathUnescape(text); err == nil {
		add(SecretEncoding, "is encoded as in a URL, with % in place of some characters", as, was)
	}
	add(SecretEncoding, "has spaces where there was a +", as, strings.ReplaceAll(text, " ", "+"))
	add(SecretEncoding, `has \ in front of other characters`, as, strings.NewReplacer(`\/`, "/", `\"`, `"`, `\$`, "$", `\\`, `\`).Replace(text))
	add(SecretEncoding, "is written in the alphabet of base64 for URLs", as, strings.NewReplacer("-", "+", "_", "/").Replace(text))
	add(SecretForm, "is PEM without its first and last line", "write -----BEGIN PUBLIC KEY----- before it and -----END PUBLIC KEY----- behind it, each on a line of its own",
		"-----BEGIN PUBLIC KEY-----\n"+text+"\n-----END PUBLIC KEY-----\n")
}

// encoded adds what a text was before somebody decoded it.
func encoded(text string, add func(Word, string, string, string)) {
	const as = "give it as the sender shows it"
	add(SecretEncoding, "was decoded from base64", as, base64.StdEncoding.EncodeToString([]byte(text)))
	add(SecretEncoding, "was decoded from hexadecimal", as, hex.EncodeToString([]byte(text)))
	if utf8.ValidString(text) {
		add(SecretEncoding, "is not encoded as in a URL, as the sender has it", as, url.QueryEscape(text))
	}
}

// swapCase returns a text in small letters if it is in capital ones, and the other way round.
func swapCase(text string) string {
	if lower := strings.ToLower(text); lower != text {
		return lower
	}
	return strings.ToUpper(text)
}

// shape returns what is wrong with one of the secrets by its shape alone.
func (c Capture) shape() (Cause, bool) {
	for _, secret := range c.Settings.Secrets {
		if f, ok := secretshape.Look(secret.Text, c.Environ, c.Spec); ok {
			return Cause{Word: words[f.Kind], Text: "the secret " + f.Text, Mend: f.Mend}, true
		}
	}
	return Cause{}, false
}

// lacksBeginning says that a secret does not begin as those of the sender do.
func (c Capture) lacksBeginning() (Cause, bool) {
	begin := secretshape.Beginning(c.Spec)
	if begin == "" || slices.ContainsFunc(c.Settings.Secrets, func(s spec.Secret) bool { return strings.HasPrefix(s.Text, begin) }) {
		return Cause{}, false
	}
	return Cause{Word: SecretPrefix, Text: "the secret does not begin with " + begin + ", as those of " + c.Spec.Title + " do: it is another one, or a part of it", Mend: "give " + c.Spec.Secret}, true
}
