package outgoing

import "net/http"

// Remark says about the answer to a request what its status alone does not: why it counts as a failure although
// it is of the class of redirects. Empty: nothing. https://www.rfc-editor.org/rfc/rfc9110#section-15.4
func Remark(answer *http.Response) string {
	switch status := answer.StatusCode; {
	case status == http.StatusNotModified:
		return "not modified, which answers a condition; the request made none, so answer 2xx"
	case status == http.StatusMultipleChoices:
		return "several addresses to choose from, of which none is chosen; answer 2xx"
	case status == http.StatusMovedPermanently, status == http.StatusFound, status == http.StatusSeeOther,
		status == http.StatusTemporaryRedirect, status == http.StatusPermanentRedirect:
		if answer.Header.Get("Location") == "" {
			return "a redirect that does not say where to"
		}
		return "redirects are not followed"
	case status/100 == 3:
		return "no success, and no redirect either; answer 2xx"
	}
	return ""
}
