package redisstore

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
)

// reply is what a script returned: strings, numbers, and nil for fields that are not there.
type reply []any

// fields are the names of a claim's fields, in the order in which the scripts return them.
var fields = []any{"state", "token", "lease", "type", "digest", "first", "updated", "error", "pinned"}

func (r reply) text(i int) string {
	text, _ := r[i].(string)
	return text
}

// bytes returns nil for what is empty or not there.
func (r reply) bytes(i int) []byte {
	if text := r.text(i); text != "" {
		return []byte(text)
	}
	return nil
}

// claim reads a claim's fields, the first of which is r[at].
func (r reply) claim(ref hookonce.Ref, at int) (hookonce.Claim, error) {
	if len(r) != at+len(fields) {
		return hookonce.Claim{}, fmt.Errorf("the script returned %d values, not %d", len(r), at+len(fields))
	}
	r = r[at:]
	token, err := strconv.ParseInt(r.text(1), 10, 64)
	lease, err2 := parseTime(r.text(2))
	first, err3 := parseTime(r.text(5))
	updated, err4 := parseTime(r.text(6))
	pinned, err5 := strconv.ParseInt(cmp.Or(r.text(8), "0"), 10, 64) // older claims have none
	return hookonce.Claim{
		Ref: ref, State: hookonce.State(r.text(0)), Token: token, Lease: lease, Type: r.text(3), Digest: r.bytes(4),
		FirstSeen: first, UpdatedAt: updated, LastError: r.text(7), Pinned: pinned,
	}, errors.Join(err, err2, err3, err4, err5)
}

// Times are stored as microseconds since 1970. Empty: none.

func formatTime(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMicro(n).UTC(), err
}

// response reads the status, the header and the body of a response.
func (r reply) response() (hookonce.Response, error) {
	status, err := strconv.Atoi(r.text(0))
	return hookonce.Response{Status: status, Header: header.Decode([]byte(r.text(1))), Body: []byte(r.text(2))}, err
}
