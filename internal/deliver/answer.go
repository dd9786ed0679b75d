package deliver

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
)

const (
	// maxHead is how much of an answer is kept with the attempt, in bytes.
	maxHead = 512
	// maxDrained is how much more of it is read so that its connection can be used again.
	maxDrained = 16 << 10
	// answerTime is how long reading may take once the status is known, which alone decides. A slower
	// or longer answer costs the connection and nothing else.
	answerTime = 500 * time.Millisecond
)

// answer is the body of a destination's answer, of which little is read.
type answer struct {
	body io.ReadCloser
	stop *time.Timer
}

// newAnswer begins to count the time. Cancel ends the request.
func newAnswer(r *http.Response, cancel func()) *answer {
	if _, switched := r.Body.(io.Writer); switched {
		// The bare connection after a 101: cancelling does not end reads of it.
		_ = r.Body.Close()
		return &answer{body: http.NoBody}
	}
	a := &answer{body: r.Body}
	if r.Body != http.NoBody {
		a.stop = time.AfterFunc(answerTime, cancel)
	}
	return a
}

// head reads the first bytes of the answer, or what came of them in time.
func (a *answer) head() []byte {
	if a.body == http.NoBody {
		return nil
	}
	head := make([]byte, maxHead)
	n, _ := io.ReadFull(a.body, head)
	return head[:n:n]
}

// drain reads a little more and closes the body.
func (a *answer) drain() {
	if a == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, a.body, maxDrained)
	_ = a.body.Close()
	if a.stop != nil {
		a.stop.Stop()
	}
}

// MaxReply is the size in bytes of the largest answer that is passed on to a sender.
const MaxReply = 256 << 10

// errTooLong says that an answer cannot be passed on.
var errTooLong = fmt.Errorf("the answer is longer than %d bytes, and the sender waits for it", MaxReply)

// relayed ends an attempt whose answer is for the sender. A success of which not all can be passed on is
// a failure: its sender would be told something else than it is told later.
func (d *Deliverer) relayed(o journal.Outcome, dest *destination, w *journal.Work, response *http.Response) (journal.Outcome, *answer, finding) {
	body, err := readReply(response.Body)
	o.Duration = d.opt.Now().Sub(o.Started)
	f := d.judge(&o, dest, w, response)
	switch {
	case err == nil:
		o.Response = &journal.Response{Status: o.Status, Header: replyHeader(response.Header), Body: body}
	case o.State == journal.Done:
		f.verdict = d.unanswered(&o, dest, w, err)
		if err == errTooLong {
			f.verdict = declined
		}
		return o, nil, f
	}
	o.Excerpt = body[:min(len(body), maxHead)]
	if f.verdict == declined && o.Status < 500 {
		f.verdict = success // it is the answer that the sender asked for
	}
	return o, nil, f
}

// readReply reads an answer whole and closes it. The context of the request bounds the time.
func readReply(from io.ReadCloser) ([]byte, error) {
	defer from.Close()
	body, err := io.ReadAll(io.LimitReader(from, MaxReply+1))
	if err == nil && len(body) > MaxReply {
		return body[:maxHead], errTooLong
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
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if header.HopByHop(name) || notRelayed[name] || strings.HasPrefix(name, header.OwnPrefix) || header.ConnectionLists(h["Connection"], name) {
			continue
		}
		for _, value := range h[name] {
			if header.ValidName(name) && isFieldValue(value) {
				lines.WriteString(name + ": " + value + "\r\n")
			}
		}
	}
	return []byte(lines.String())
}
