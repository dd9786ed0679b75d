package dynamostore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
)

// item is an item of the table, or a part of one.
type item map[string]types.AttributeValue

// The attributes of items. What is empty is not there.
const (
	attrKey     = "pk"      // S: what the item is of; see claimKey
	attrAttempt = "att"     // S: the write that made the item what it is; see newAttempt
	attrUpdated = "upd"     // N: when that was, in microseconds since 1970, like all times but the next
	attrExpiry  = "expires" // N: when it may be deleted, in seconds since 1970; of done claims only
	attrState   = "st"      // S: of a claim
	attrToken   = "tok"     // N
	attrLease   = "lease"   // N
	attrType    = "typ"     // S
	attrDigest  = "dig"     // B
	attrFirst   = "fs"      // N
	attrError   = "err"     // S
	attrPinned  = "pin"     // N
	attrStatus  = "rs"      // N: of the response that is kept
	attrHeader  = "rh"      // B
	attrBody    = "rb"      // B
	attrKind    = "rk"      // S: the kind of the newest rank
	attrRank    = "rn"      // N: the rank
	attrPlace   = "sta"     // S: the state of a state machine
)

// Keys begin with what the item is. A claim's ends with the source and the key, each with its length in front.

const (
	claimPrefix   = "claim:"
	versionPrefix = "version:"
	statePrefix   = "state:"
)

func claimKey(ref hookonce.Ref) string { return claimPrefix + hookonce.JoinKey(ref.Source, ref.Key) }

// refOf returns what a claim's key names.
func refOf(key string) (hookonce.Ref, bool) {
	rest, isClaim := strings.CutPrefix(key, claimPrefix)
	source, rest, ok := cutPart(rest)
	last, rest, ok2 := cutPart(rest)
	return hookonce.Ref{Source: source, Key: last}, isClaim && ok && ok2 && rest == ""
}

// cutPart takes a part that [hookonce.JoinKey] wrote from the front of joined.
func cutPart(joined string) (part, rest string, ok bool) {
	length, rest, _ := strings.Cut(joined, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func binary(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
func micros(t time.Time) types.AttributeValue { return number(t.UnixMicro()) }

// record is a claim as it is stored. Verdict and Conflict belong to a request, and are not.
type record struct {
	hookonce.Claim
	attempt  string // the write that made it so
	response *hookonce.Response
}

// storable is a type of an event in a form that can be stored: attributes are UTF-8.
func storable(eventType string) string { return strings.ToValidUTF8(eventType, "\uFFFD") }

// item is the record to store; expiry is 0 if it has none.
func (r *record) item(expiry int64) item {
	i := item{
		attrKey: text(claimKey(r.Ref)), attrAttempt: text(r.attempt), attrState: text(string(r.State)), attrToken: number(r.Token),
		attrFirst: micros(r.FirstSeen), attrUpdated: micros(r.UpdatedAt),
	}
	if !r.Lease.IsZero() {
		i[attrLease] = micros(r.Lease)
	}
	if r.Type != "" {
		i[attrType] = text(r.Type)
	}
	if len(r.Digest) > 0 {
		i[attrDigest] = binary(r.Digest)
	}
	if r.LastError != "" {
		i[attrError] = text(r.LastError)
	}
	if r.Pinned != 0 {
		i[attrPinned] = number(r.Pinned)
	}
	if expiry != 0 {
		i[attrExpiry] = number(expiry)
	}
	if r.response != nil {
		keep(i, *r.response)
	}
	return i
}

// keep adds a response to an item. The status is always there.
func keep(i item, r hookonce.Response) {
	i[attrStatus] = number(int64(r.Status))
	if lines := header.Encode(r.Header); len(lines) > 0 {
		i[attrHeader] = binary(lines)
	}
	if len(r.Body) > 0 {
		i[attrBody] = binary(r.Body)
	}
}

// record reads an item as the claim under ref; nil if there is no item.
func (i item) record(ref hookonce.Ref) (*record, error) {
	if i == nil {
		return nil, nil
	}
	rd := &reader{item: i}
	r := &record{
		Claim: hookonce.Claim{
			Ref: ref, State: hookonce.State(rd.text(attrState)), Token: rd.number(attrToken), Lease: rd.time(attrLease),
			Pinned: rd.number(attrPinned), Type: rd.text(attrType), Digest: rd.binary(attrDigest),
			FirstSeen: rd.time(attrFirst), UpdatedAt: rd.time(attrUpdated), LastError: rd.text(attrError),
		},
		attempt: rd.text(attrAttempt),
	}
	if _, kept := i[attrStatus]; kept {
		r.response = &hookonce.Response{
			Status: int(rd.number(attrStatus)), Header: header.Decode(rd.binary(attrHeader)), Body: rd.binary(attrBody),
		}
	}
	if rd.err == nil && (r.attempt == "" || r.State == "" || r.Token < 1) {
		rd.err = fmt.Errorf("the item %q is not one that this package has written: the table must be its own", claimKey(ref))
	}
	return r, rd.err
}

// reader reads attributes and keeps the first error.
type reader struct {
	item item
	err  error
}

// text returns "" for what is not there.
func (rd *reader) text(name string) string {
	switch v := rd.item[name].(type) {
	case nil:
	case *types.AttributeValueMemberS:
		return v.Value
	default:
		rd.wrong(name, "S")
	}
	return ""
}

// binary returns nil for what is not there.
func (rd *reader) binary(name string) []byte {
	switch v := rd.item[name].(type) {
	case nil:
	case *types.AttributeValueMemberB:
		return v.Value
	default:
		rd.wrong(name, "B")
	}
	return nil
}

// number returns 0 for what is not there.
func (rd *reader) number(name string) int64 {
	switch v := rd.item[name].(type) {
	case nil:
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err != nil {
			rd.wrong(name, "N (a whole number)")
		}
		return n
	default:
		rd.wrong(name, "N")
	}
	return 0
}

// time returns the zero time for what is not there.
func (rd *reader) time(name string) time.Time {
	if rd.item[name] == nil {
		return time.Time{}
	}
	return time.UnixMicro(rd.number(name)).UTC()
}

func (rd *reader) wrong(name, want string) {
	if rd.err == nil {
		rd.err = fmt.Errorf("the attribute %s of the item %q is no %s: the table must be the store's own", name, rd.textOfKey(), want)
	}
}

func (rd *reader) textOfKey() string {
	if key, ok := rd.item[attrKey].(*types.AttributeValueMemberS); ok {
		return key.Value
	}
	return "?"
}
