package ingest

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// answer is what a request is answered when nothing went wrong.
type answer struct {
	status      int
	header      http.Header // of a destination's answer, or of the reply to a handshake
	contentType []string
	statusField []string // Hookonce-Status; nil where nothing was accepted
	body        []byte
	counts      statusCounts // for another cell
	brief       bool         // that one is told nothing else
}

// Header values that every answer shares. The server only reads them.
var (
	jsonType = []string{"application/json"}
	textType = []string{"text/plain; charset=utf-8"}
	nosniff  = []string{"nosniff"}

	statusFields = map[journal.Status][]string{
		journal.Accepted:  {string(journal.Accepted)},
		journal.Duplicate: {string(journal.Duplicate)},
		journal.Conflict:  {string(journal.Conflict)},
		journal.Unkeyed:   {string(journal.Unkeyed)},

		journal.Unprotected: {string(journal.Unprotected)},
	}
)

func (a *answer) write(w http.ResponseWriter) {
	a.fill(w.Header())
	w.WriteHeader(a.status)
	if len(a.body) > 0 {
		_, _ = w.Write(a.body) // the events are durable whether or not the sender hears it
	}
}

// fill writes the header of the answer into h.
func (a *answer) fill(h http.Header) {
	maps.Copy(h, a.header)
	if a.contentType != nil {
		h["Content-Type"] = a.contentType
	}
	h["X-Content-Type-Options"] = nosniff
	if a.statusField != nil {
		h["Hookonce-Status"] = a.statusField
	}
}

// handshake returns the reply to a handshake, which no browser renders.
func handshake(a hookonce.Answer) answer {
	a = a.Inert()
	reply := answer{status: a.Status, body: a.Body}
	if a.ContentType != "" {
		reply.contentType = []string{a.ContentType}
	}
	if len(a.Header) > 0 {
		reply.header = make(http.Header, len(a.Header))
	}
	for name, value := range a.Header {
		reply.header.Set(name, value)
	}
	return reply
}

// required returns the provider's own acknowledgement, or nil when any answer of 200 will do and the
// sender can be told what became of the event.
func required(ok hookonce.Answer) *answer {
	if (ok.Status == 0 || ok.Status == http.StatusOK) && len(ok.Body) == 0 {
		return nil
	}
	a := answer{status: cmp.Or(ok.Status, http.StatusOK), body: ok.Body}
	if len(ok.Body) > 0 {
		a.contentType = []string{cmp.Or(ok.ContentType, textType[0])}
	}
	return &a
}

// statusCounts counts the results of one request by status.
type statusCounts struct{ accepted, duplicates, conflicts, unkeyed, unprotected int }

func (t *statusCounts) add(s journal.Status) {
	switch s {
	case journal.Accepted:
		t.accepted++
	case journal.Duplicate:
		t.duplicates++
	case journal.Conflict:
		t.conflicts++
	case journal.Unkeyed:
		t.unkeyed++
	case journal.Unprotected:
		t.unprotected++
	}
}

// without takes off events that were found on record.
func (t *statusCounts) without(found int) {
	duplicates := min(found, t.duplicates)
	t.duplicates -= duplicates
	t.conflicts -= min(found-duplicates, t.conflicts)
}

// status is that of the whole request: new work outranks copies, and what a person should look at
// outranks what is ordinary. Without events there was nothing to repeat.
func (t *statusCounts) status() journal.Status {
	switch {
	case t.unprotected > 0:
		return journal.Unprotected
	case t.accepted > 0:
		return journal.Accepted
	case t.unkeyed > 0:
		return journal.Unkeyed
	case t.conflicts > 0:
		return journal.Conflict
	case t.duplicates > 0:
		return journal.Duplicate
	}
	return journal.Accepted
}

// single is the answer to a request of one event: {"status":"accepted","key":"evt_1"}.
func single(s journal.Status, key string) answer {
	body := make([]byte, 0, 64+len(key))
	body = append(body, `{"status":"`...)
	body = append(body, s...)
	if key != "" {
		body = append(body, `","key":`...)
		body = appendJSONString(body, key)
		body = append(body, "}\n"...)
	} else {
		body = append(body, "\"}\n"...)
	}
	return answer{status: http.StatusOK, contentType: jsonType, statusField: statusFields[s], body: body}
}

// batch is the answer to a request of several events, or none, with the counts.
func (t *statusCounts) batch() answer {
	s := t.status()
	body := append([]byte(`{"status":"`), s...)
	body = append(body, '"')
	body = appendCount(body, journal.Accepted, t.accepted)
	body = appendCount(body, journal.Duplicate, t.duplicates)
	body = appendCount(body, journal.Conflict, t.conflicts)
	body = appendCount(body, journal.Unkeyed, t.unkeyed)
	if t.unprotected > 0 {
		body = appendCount(body, journal.Unprotected, t.unprotected)
	}
	body = append(body, "}\n"...)
	return answer{status: http.StatusOK, contentType: jsonType, statusField: statusFields[s], body: body}
}

func appendCount(b []byte, name journal.Status, n int) []byte {
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":`...)
	return strconv.AppendInt(b, int64(n), 10)
}

// appendJSONString appends s as a JSON string. Keys are nearly always plain.
func appendJSONString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string always encodes
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
