package diagnose

import (
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// carriers returns the canonical names of the headers that the signature of a sender is in or covers, that of the signature
// first.
func carriers(known spec.Spec) (names []string) {
	for _, v := range known.WithDefaults().Verify {
		values := append([]spec.Value{v.Signature.In, v.ID}, v.Sign...)
		if v.Time != nil {
			values = append(values, v.Time.In)
		}
		if by, ok := v.Scheme.(spec.Imitator); ok {
			values = append(values, by.Carrier())
		}
		for _, value := range values {
			name, ok := strings.CutPrefix(string(value), "header:")
			if name = http.CanonicalHeaderKey(name); ok && !strings.HasSuffix(name, "*") && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// squashed is a header's name without what frameworks and proxies do to it.
func squashed(name string) string {
	name = strings.TrimPrefix(strings.ToLower(name), "x-")
	name = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r == ' ' {
			return -1
		}
		return r
	}, name)
	for _, prefix := range []string{"redirect", "http", "x", "forwarded", "original", "amznremapped", "headers", "header"} {
		if rest := strings.TrimPrefix(name, prefix); rest != "" {
			name = rest
		}
	}
	return name
}

// renamed yields the request with headers that came under another name under their own.
func (s *search) renamed() iter.Seq[change] {
	return func(yield func(change) bool) {
		header, notes := s.Capture.renames()
		if len(notes) > 0 {
			req := *s.req
			req.Header = header
			yield(change{&req, once(notes)})
		}
	}
}

// renames returns the header of the request with what came under another name under its own, and says which that are.
func (c Capture) renames() (http.Header, []note) {
	header := c.Request.Header.Clone()
	var notes []note
	for _, name := range append(carriers(c.Spec), "Content-Type") {
		if header.Get(name) != "" {
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(c.Request.Header)) {
			if came := header[other]; other != name && squashed(other) == squashed(name) && len(came) > 0 && came[0] != "" {
				header[name] = came
				notes = append(notes, note{HeaderRenamed, "the header " + name + " came as " + shown(other), "give it its own name again: frameworks and CGI write headers in another way"})
				break
			}
		}
	}
	return header, notes
}

// values yields the request with what the headers of the signature may have been.
func (s *search) values() iter.Seq[change] {
	return func(yield func(change) bool) {
		for _, name := range carriers(s.Spec) {
			came := s.req.Header[name]
			if len(came) == 0 {
				continue
			}
			with := func(value string, word Word, is, mend string) bool {
				if value == "" || len(came) == 1 && value == came[0] {
					return true
				}
				req := *s.req
				req.Header = s.req.Header.Clone()
				req.Header[name] = []string{value}
				return yield(change{&req, []note{{word, "the header " + name + " " + is, mend}}})
			}
			for _, value := range came[:min(len(came), 8)] {
				if len(came) > 1 && !with(value, HeaderChanged, "came several times, and not with one value", "give the one that the sender wrote") {
					return
				}
			}
			if !s.edited(name, came[0], with) {
				return
			}
		}
	}
}

// edited calls with for everything that the value of a header may have been, as long as it returns true.
func (s *search) edited(name, value string, with func(value string, word Word, is, mend string) bool) bool {
	const copyIt = "give its value as it came"
	bare := strings.Trim(strings.TrimSpace(value), "\"'`[] \t")
	_, afterColon, _ := strings.Cut(value, ":")
	plain, _ := url.PathUnescape(value)
	ok := with(bare, HeaderChanged, "has quotes or brackets around its value", copyIt) &&
		with(strings.TrimSpace(afterColon), HeaderChanged, "has its own name, or another one, in front of its value", copyIt) &&
		with(strings.ReplaceAll(value, `\`, ""), HeaderChanged, `has \ in its value`, copyIt) &&
		with(plain, HeaderChanged, "is encoded as in a URL", copyIt) &&
		with(strings.ReplaceAll(value, " ", ""), HeaderChanged, "has spaces in its value that the sender did not write", copyIt) &&
		with(strings.ReplaceAll(value, " ", "+"), HeaderChanged, "has spaces in its value where the sender wrote +", copyIt) &&
		with(strings.TrimRight(value, ",;"), HeaderChanged, "has something at its end that the sender did not write", copyIt) &&
		with(lowerHex(value), HeaderChanged, "has its signature in capital letters", copyIt) &&
		with(strings.NewReplacer("-", "+", "_", "/").Replace(value), SignatureEncoding, "has its signature in the alphabet of base64 for URLs", copyIt) &&
		with(value+"=", HeaderChanged, "lacks the = at its end", copyIt) &&
		with(value+"==", HeaderChanged, "lacks the = at its end", copyIt)
	for _, between := range [][2]string{{";", ","}, {",", ";"}, {" ", ","}, {"&", ","}} {
		ok = ok && with(strings.ReplaceAll(value, between[0], between[1]), HeaderChanged, "has other signs between its parts than the sender wrote", copyIt)
	}
	for _, v := range s.Spec.Verify {
		prefix := v.Signature.Prefix
		if prefix == "" || !strings.EqualFold("header:"+name, string(v.Signature.In)) {
			continue
		}
		ok = ok && with(prefix+bare, SignatureForm, "lacks "+strings.TrimSpace(prefix)+" in front of its signature", copyIt)
		if i := strings.Index(value, prefix); i > 0 && v.Signature.Split == "" {
			ok = ok && with(value[i:], HeaderChanged, "has something in front of "+strings.TrimSpace(prefix), copyIt)
		}
	}
	for _, v := range s.Spec.Verify {
		if v.Time == nil {
			continue
		}
		part, inPart := strings.CutPrefix(string(v.Time.In), "part:")
		before, rest, found := strings.Cut(value, part)
		text, after, _ := strings.Cut(rest, strings.TrimSpace(v.Signature.Split))
		if !inPart || !found || v.Signature.Split == "" {
			before, text, after = "", value, ""
		} else {
			before, after = before+part, v.Signature.Split+after
		}
		for _, other := range times(text) {
			ok = ok && with(before+other+after, TimeUnit, "has its time in another unit than the sender writes", copyIt)
		}
	}
	return ok
}

// lowerHex returns a text with its hexadecimal digits in small letters.
func lowerHex(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'F' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// times returns how else a time could be written.
func times(text string) []string {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return []string{strconv.FormatInt(at.Unix(), 10), strconv.FormatInt(at.UnixMilli(), 10)}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1e14 {
		return nil
	}
	return []string{strconv.FormatInt(n/1000, 10), text + "000", time.Unix(n, 0).UTC().Format(time.RFC3339)}
}
