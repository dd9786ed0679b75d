package httpsig

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// Request is what a signature covers parts of.
type Request struct {
	// Method is its method, in capitals.
	Method string
	// URL is the address that the sender calls: absolute, as it writes it, without a fragment.
	URL string
	// Header is its header, with canonical names.
	Header http.Header
}

// value returns the value of a component.
func (r *Request) value(c Component) (string, error) {
	if !strings.HasPrefix(c.Name, "@") {
		lines, ok := r.Header[textproto.CanonicalMIMEHeaderKey(c.Name)]
		if !ok {
			return "", fmt.Errorf("the header %s, which the signature covers, is absent", c.Name)
		}
		trimmed := make([]string, len(lines))
		for i, line := range lines {
			trimmed[i] = strings.Trim(line, " \t")
		}
		return strings.Join(trimmed, ", "), nil
	}
	if c.Name == "@method" {
		return r.Method, nil
	}
	scheme, authority, path, query, ok := cutURL(r.URL)
	if !ok {
		return "", fmt.Errorf("the signature covers %s, and the URL that the sender calls is not known", c.Name)
	}
	switch c.Name {
	case "@target-uri":
		return scheme + "://" + authority + path + query, nil
	case "@authority":
		authority = strings.ToLower(authority)
		return strings.TrimSuffix(authority, map[string]string{"http": ":80", "https": ":443"}[strings.ToLower(scheme)]), nil
	case "@scheme":
		return strings.ToLower(scheme), nil
	case "@request-target":
		return path + query, nil
	case "@path":
		return path, nil
	case "@query":
		if query == "" {
			return "?", nil // what RFC 9421 makes of none
		}
		return query, nil
	case "@query-param":
		return queryParam(query, c.Param)
	}
	return "", fmt.Errorf("the signature covers %s, which a request does not have", c.Name)
}

// HasQuery reports whether the address has a query.
func (r *Request) HasQuery() bool { return strings.Contains(r.URL, "?") }

// cutURL takes an absolute address apart. The path has at least its slash, and a query its question mark.
func cutURL(address string) (scheme, authority, path, query string, ok bool) {
	scheme, rest, ok := strings.Cut(address, "://")
	place, q, has := strings.Cut(rest, "?")
	if has {
		query = "?" + q
	}
	authority, path, _ = strings.Cut(place, "/")
	return scheme, authority, "/" + path, query, ok && authority != ""
}

// queryParam returns the value of the only parameter of that name.
func queryParam(query, name string) (value string, err error) {
	found := 0
	for part := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		key, text, _ := strings.Cut(part, "=")
		if again, err := reencode(key); err != nil || again != name {
			continue
		}
		if value, err = reencode(text); err != nil {
			return "", fmt.Errorf("the parameter %s of the query cannot be read", name)
		}
		found++
	}
	if found != 1 {
		return "", fmt.Errorf("the query has the parameter %s, which the signature covers, %d times; expected one", name, found)
	}
	return value, nil
}

// formEncoding turns what [url.QueryEscape] writes into what RFC 9421 signs: the encoding of forms, with %20 for a space.
var formEncoding = strings.NewReplacer("+", "%20", "%2A", "*", "~", "%7E")

// reencode returns a part of a query in its one spelling.
func reencode(part string) (string, error) {
	plain, err := url.QueryUnescape(part)
	return formEncoding.Replace(url.QueryEscape(plain)), err
}
