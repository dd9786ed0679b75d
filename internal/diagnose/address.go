package diagnose

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"net"
	"net/url"
	"slices"
	"strings"
)

// signedURL returns the URL that the sender signed if everything is as it should be: the registered one with the query of the
// request, as [spec.Settings.URL] says, or that of the request.
func signedURL(registered, called string) string {
	if registered == "" {
		return called
	}
	place, own, _ := strings.Cut(registered, "?")
	_, query, _ := strings.Cut(called, "?")
	if own != "" && query != own && !strings.HasPrefix(query, own+"&") {
		query = own
	}
	if query == "" {
		return place
	}
	return place + "?" + query
}

// option is one that a part of a URL may have been, and what is wrong then.
type option struct {
	is    string
	notes []note
}

// addresses yields requests with what the signed URL may have been, those with few differences first.
func (s *search) addresses() iter.Seq[change] {
	return func(yield func(change) bool) {
		if !s.Spec.SignsURL() || s.remote {
			return
		}
		type address struct {
			url   string
			notes []note
		}
		var all []address
		for _, scheme := range s.schemes() {
			for _, host := range s.hosts() {
				for _, path := range s.paths() {
					for _, query := range s.queries() {
						at := address{scheme.is + "://" + host.is + path.is, slices.Concat(scheme.notes, host.notes, path.notes, query.notes)}
						if query.is != "" {
							at.url += "?" + query.is
						}
						all = append(all, at)
					}
				}
			}
		}
		slices.SortStableFunc(all, func(a, b address) int { return cmp.Compare(len(a.notes), len(b.notes)) })
		for _, at := range all {
			if at.url == s.req.URL || len(at.notes) == 0 {
				continue
			}
			req := *s.req
			req.URL = at.url
			if !yield(change{&req, once(at.notes)}) {
				return
			}
		}
	}
}

// once leaves one of what is to be done, where all of it is about the URL.
func once(notes []note) []note {
	notes = slices.Clone(notes)
	for i := range notes[:len(notes)-1] {
		notes[i].mend = ""
	}
	return notes
}

const registerIt = "give the URL as it is registered with the sender: --signed-url, and url: of the source"

// parts are those of the URL that is known, with an empty host where none is.
func (s *search) parts() (scheme, host, path, query string) {
	place, query, _ := strings.Cut(s.req.URL, "?")
	scheme, rest, ok := strings.Cut(place, "://")
	if !ok {
		return "https", "", place, query
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return scheme, rest[:i], rest[i:], query
	}
	return scheme, rest, "", query
}

func (s *search) schemes() []option {
	scheme, _, _, _ := s.parts()
	other := map[string]string{"http": "https", "https": "http"}[strings.ToLower(scheme)]
	if other == "" {
		other = "https"
	}
	return []option{{is: scheme}, {other, []note{{URLScheme, "the URL begins with " + scheme + ":, and the signed one with " + other + ":", registerIt + "; a proxy that ends TLS changes it"}}}}
}

// hosts returns the host of the URL with and without port, and those that proxies say were called.
func (s *search) hosts() []option {
	scheme, host, _, _ := s.parts()
	all := []option{{is: host}}
	add := func(is, text string) {
		if is != "" && !strings.ContainsAny(is, "/?#@ ") && !slices.ContainsFunc(all, func(o option) bool { return o.is == is }) {
			all = append(all, option{is, []note{{URLHost, text, registerIt}}})
		}
	}
	if bare, port, err := net.SplitHostPort(host); err == nil {
		add(bare, "the URL has the port "+shown(port)+", and the signed one has none")
	} else if host != "" {
		port := map[string]string{"http": "80"}[strings.ToLower(scheme)]
		add(host+":"+cmp.Or(port, "443"), "the signed URL has a port")
	}
	if _, bare, ok := strings.Cut(host, "@"); ok {
		add(bare, "the URL has a user in it, and the signed one has none")
	}
	for _, name := range []string{"X-Forwarded-Host", "X-Original-Host", "X-Host", "Host"} {
		is, _, _ := strings.Cut(s.req.Header.Get(name), ",")
		add(strings.TrimSpace(is), "the signed URL has another host, which the header "+name+" says")
	}
	_, forwarded, _ := strings.Cut(s.req.Header.Get("Forwarded"), "host=")
	forwarded, _, _ = strings.Cut(forwarded, ";")
	add(strings.Trim(forwarded, `" `), "the signed URL has another host, which the header Forwarded says")
	add(strings.ToLower(host), "the host of the signed URL has small letters")
	if rest, ok := strings.CutPrefix(host, "www."); ok {
		add(rest, "the host of the signed URL does not begin with www.")
	} else if host != "" {
		add("www."+host, "the host of the signed URL begins with www.")
	}
	return all
}

func (s *search) paths() []option {
	_, _, path, _ := s.parts()
	all := []option{{is: path}}
	add := func(is, text string) {
		if !slices.ContainsFunc(all, func(o option) bool { return o.is == is }) {
			all = append(all, option{is, []note{{URLPath, text, registerIt}}})
		}
	}
	if bare, ok := strings.CutSuffix(path, "/"); ok {
		add(bare, "the URL has a slash at its end, and the signed one has none")
	} else {
		add(path+"/", "the signed URL has a slash at its end")
	}
	for _, name := range []string{"X-Original-Uri", "X-Forwarded-Uri", "X-Original-Url", "X-Rewrite-Url", "X-Forwarded-Path"} {
		if is, _, _ := strings.Cut(s.req.Header.Get(name), "?"); strings.HasPrefix(is, "/") {
			add(is, "the signed URL has another path, which the header "+name+" says")
		}
	}
	if prefix := strings.TrimSuffix(s.req.Header.Get("X-Forwarded-Prefix"), "/"); strings.HasPrefix(prefix, "/") {
		add(prefix+path, "the signed URL has more in front of its path, which the header X-Forwarded-Prefix says")
	}
	if plain, err := url.PathUnescape(path); err == nil {
		add(plain, "the path of the signed URL is not encoded with %")
		add((&url.URL{Path: plain}).EscapedPath(), "the path of the signed URL is encoded with %")
	}
	return all
}

// queries returns the query of the URL, none, and that of the request.
func (s *search) queries() []option {
	_, _, _, query := s.parts()
	all := []option{{is: query}}
	add := func(is, text string) {
		if !slices.ContainsFunc(all, func(o option) bool { return o.is == is }) {
			all = append(all, option{is, []note{{URLQuery, text, registerIt}}})
		}
	}
	add("", "the signed URL has no query")
	_, called, _ := strings.Cut(s.Request.URL, "?")
	add(called, "the signed URL has the query with which it was called, and the registered one is given with another")
	_, registered, _ := strings.Cut(s.Settings.URL, "?")
	add(registered, "the signed URL has the query that is registered, and nothing more")
	if strings.HasPrefix(s.Spec.Name, "twilio") {
		sum := sha256.Sum256(s.req.Body)
		add("bodySHA256="+hex.EncodeToString(sum[:]), "the signed URL has the query that Twilio adds (bodySHA256)")
	}
	if values, err := url.ParseQuery(query); err == nil {
		add(strings.ReplaceAll(values.Encode(), "+", "%20"), "the query of the signed URL is in another order, or encoded in another way")
	}
	for _, name := range []string{"X-Original-Uri", "X-Forwarded-Uri", "X-Original-Url", "X-Rewrite-Url"} {
		_, is, _ := strings.Cut(s.req.Header.Get(name), "?")
		add(is, "the signed URL has another query, which the header "+name+" says")
	}
	return all
}
