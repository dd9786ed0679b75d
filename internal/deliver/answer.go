package deliver

import (
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
)

// maxReply is the size in bytes of the largest answer that is passed on to a sender.
const maxReply = 256 << 10

// errTooLong says that an answer cannot be passed on.
var errTooLong = &retry.Fault{Kind: retry.Invalid, Text: fmt.Sprintf("the answer is longer than %d bytes, and the sender waits for it", maxReply)}

// readReply reads an answer whole and closes it. The context of the request bounds the time.
func readReply(from io.ReadCloser) ([]byte, error) {
	defer from.Close()
	body, err := io.ReadAll(io.LimitReader(from, maxReply+1))
	if err == nil && len(body) > maxReply {
		return body[:outgoing.MaxHead], errTooLong
	}
	return body, err
}

// notRelayed are headers of an answer that are not for the sender: those of the connection, cookies, and
// what speaks for the whole of a host, which the sender reached under another name.
var notRelayed = map[string]bool{
	"Alt-Svc":                   true,
	"Clear-Site-Data":           true,
	"Date":                      true,
	"Nel":                       true,
	"Proxy-Authentication-Info": true,
	"Report-To":                 true,
	"Reporting-Endpoints":       true,
	"Set-Cookie":                true,
	"Set-Cookie2":               true,
	"Strict-Transport-Security": true,
}

// replyHeader returns the headers of an answer that are passed on, as sorted field lines.
func replyHeader(h http.Header) []byte {
	kept := maps.Clone(h)
	maps.DeleteFunc(kept, func(name string, _ []string) bool {
		return header.HopByHop(name) || notRelayed[name] || header.Own(name) || header.ConnectionLists(h, name)
	})
	return header.Encode(kept)
}
