package deliver

import (
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
)

// MaxReply is the size in bytes of the largest answer that is passed on to a sender.
const MaxReply = 256 << 10

// errTooLong says that an answer cannot be passed on.
var errTooLong = &retry.Fault{Text: fmt.Sprintf("the answer is longer than %d bytes, and the sender waits for it", MaxReply)}

// relayed ends an attempt whose answer is for the sender. A success of which not all can be passed on is
// a failure: its sender would be told something else than it is told later.
func (d *Deliverer) relayed(o journal.Outcome, dest *destination, w *journal.Work, response *http.Response) (journal.Outcome, *outgoing.Answer, retry.Verdict) {
	body, err := readReply(response.Body)
	o.Duration = d.opt.Now().Sub(o.Started)
	v := d.judge(&o, dest, w, response)
	switch {
	case err == nil:
		o.Response = &journal.Response{Status: o.Status, Header: replyHeader(response.Header), Body: body}
	case o.State == journal.Done:
		v = d.unanswered(&o, dest, w, err)
		if err == errTooLong {
			v.Signal = retry.Declined
		}
		return o, nil, v
	}
	o.Excerpt = body[:min(len(body), outgoing.MaxHead)]
	if v.Signal == retry.Declined && o.Status < 500 {
		v.Signal = retry.Success // it is the answer that the sender asked for
	}
	return o, nil, v
}

// readReply reads an answer whole and closes it. The context of the request bounds the time.
func readReply(from io.ReadCloser) ([]byte, error) {
	defer from.Close()
	body, err := io.ReadAll(io.LimitReader(from, MaxReply+1))
	if err == nil && len(body) > MaxReply {
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
