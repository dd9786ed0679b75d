package cells

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// What a call to another cell begins with.
const (
	callForward = 'f' // a request
	callKnown   = 'k' // a question, as JSON
)

// What the answer to a call begins with.
const (
	answerDone    = 'a'
	answerRefused = 'r' // the reason follows
	answerMaps    = 'm' // other maps count there: tidings follow, as JSON
	answerAway    = 'e' // it could not be looked at
)

// Request is one that is handed to another cell as it came.
type Request struct {
	Source  string
	Method  string
	TLS     bool   // it came over
	Host    string // that it was sent to
	Target  string // of the request line, without a host
	Address string // of the sender
	Header  http.Header
	Body    []byte
}

// Hop is how a request came from another cell.
type Hop struct {
	From  string
	To    string // who is meant
	Known bool   // the keys are on record here
	Map   string // by which it was placed, see [Chain.ID]
	Part  string // which of its events are meant
	// Left is for how long the other cell waits for the answer; 0: for as long as it takes.
	Left time.Duration
	// Brief says that the other cell takes an answer that has nothing but counts.
	Brief bool
}

// Answer is what a cell answered a request that another one has handed on.
type Answer struct {
	Status int // 0: it has counts alone, and whoever handed the request on knows what is answered then
	Header http.Header
	Body   []byte
	Counts string // of what became of the events, see Counts
}

// Outcome is what became of a request that another cell has handed on: an answer, or why there is none.
type Outcome struct {
	Answer  *Answer
	Refused string // the reason
	Maps    bool   // it was placed by other maps than count here
}

// texts appends texts, each behind its length.
func texts(b []byte, all ...string) []byte {
	for _, t := range all {
		b = append(binary.AppendUvarint(b, uint64(len(t))), t...)
	}
	return b
}

func fields(b []byte, h http.Header) []byte {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	b = binary.AppendUvarint(b, uint64(n))
	for name, values := range h {
		for _, v := range values {
			b = texts(b, name, v)
		}
	}
	return b
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// handed appends a request in the form in which it goes to another cell, without its body, which follows.
func handed(b []byte, hop *Hop, r *Request) []byte {
	b = append(b, callForward)
	b = texts(b, hop.From, hop.To, hop.Map, hop.Part, flag(hop.Known), r.Source, r.Method, flag(r.TLS), r.Host, r.Target, r.Address)
	return fields(b, r.Header)
}

// reader reads what texts and fields have written. All texts are parts of one copy of what stands before the body.
type reader struct {
	payload []byte
	at      int
	texts   string // as far as they go in payload; empty while that is found out
	most    int    // fields that the header has
	bad     bool
}

// readerOf returns a reader of a payload that begins with so many texts and a header of most fields at most.
func readerOf(payload []byte, texts, most int) reader {
	r := reader{payload: payload, most: most}
	for range texts {
		r.text()
	}
	for range 2 * r.count() {
		r.text()
	}
	if r.bad {
		return reader{bad: true}
	}
	return reader{payload: payload, texts: string(payload[:r.at]), most: most}
}

func (r *reader) fail() {
	r.bad, r.at = true, len(r.payload)
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.payload[r.at:])
	if size <= 0 || n > uint64(len(r.payload)-r.at) {
		r.fail()
		return 0
	}
	r.at += size
	return int(n)
}

func (r *reader) text() string {
	n, begin := r.number(), r.at
	if n > len(r.payload)-begin {
		r.fail()
		return ""
	}
	if r.at += n; r.at > len(r.texts) {
		return ""
	}
	return r.texts[begin:r.at]
}

func (r *reader) flag() bool {
	t := r.text()
	r.bad = r.bad || t != "0" && t != "1"
	return t == "1"
}

// How many fields a header has at most: each takes more memory than its bytes. Whatever a gateway takes by itself another one takes
// of it, or a request would be accepted at one door and never at the other.
const (
	// MaxFields is how many that of a request has. No listener takes more.
	MaxFields = 512
	// maxAnswerFields is how many that of an answer has, which may be an application's: as many as 64 KiB have room for, of which
	// no more is taken of one, with three bytes each (net/http takes lines that end without a carriage return), and ours.
	maxAnswerFields = 64<<10/3 + 64
)

// count reads how many fields a header has.
func (r *reader) count() int {
	n := r.number()
	if n > r.most {
		r.fail()
		return 0
	}
	return n
}

func (r *reader) fields() http.Header {
	n := r.count()
	h, values := make(http.Header, n), make([]string, n)
	for i := range values {
		name := r.text()
		values[i] = r.text()
		if r.bad {
			break
		}
		if before, ok := h[name]; ok {
			h[name] = append(before, values[i])
		} else {
			h[name] = values[i : i+1 : i+1]
		}
	}
	return h
}

// readHanded reads what handed has written, and the body behind it.
func readHanded(payload []byte) (*Hop, *Request, error) {
	in := readerOf(payload, 11, MaxFields)
	both := new(struct {
		hop Hop
		r   Request
	})
	hop, r := &both.hop, &both.r
	*hop = Hop{From: in.text(), To: in.text(), Map: in.text(), Part: in.text(), Known: in.flag()}
	*r = Request{Source: in.text(), Method: in.text(), TLS: in.flag(), Host: in.text(), Target: in.text(), Address: in.text(), Header: in.fields()}
	r.Body = in.payload[in.at:]
	if in.bad || hop.From == "" || hop.To == "" || hop.Map == "" || hop.Part == "" || r.Method == "" || r.Target == "" {
		return nil, nil, fmt.Errorf("%w: it lacks what a cell says", ErrRefused)
	}
	return hop, r, nil
}

// text is an outcome in the form in which it goes to the other cell. Maps is not said by it.
func (o *Outcome) text() []byte {
	if o.Answer == nil {
		return append([]byte{answerRefused}, o.Refused...)
	}
	a := o.Answer
	if a.Status == 0 {
		return append([]byte{answerDone, 0}, a.Counts...)
	}
	b := append(make([]byte, 0, 256+len(a.Body)), answerDone)
	b = binary.AppendUvarint(b, uint64(a.Status))
	b = fields(texts(b, a.Counts), a.Header)
	return append(b, a.Body...)
}

// readAnswer reads what text has written, behind its first byte.
func readAnswer(payload []byte) (*Answer, error) {
	status, size := binary.Uvarint(payload)
	if size > 0 && status == 0 {
		return &Answer{Counts: string(payload[size:])}, nil
	}
	if size <= 0 || status < 100 || status > 999 {
		return nil, fmt.Errorf("%w: an answer without a status", ErrAway)
	}
	in := readerOf(payload[size:], 1, maxAnswerFields)
	a := &Answer{Status: int(status), Counts: in.text(), Header: in.fields()}
	a.Body = in.payload[in.at:]
	if in.bad {
		return nil, fmt.Errorf("%w: an answer that cannot be read", ErrAway)
	}
	return a, nil
}

// said is something as JSON, behind what kind of answer it is.
func said(kind byte, v any) []byte {
	data, _ := json.Marshal(v) // of texts, numbers and times
	return append([]byte{kind}, data...)
}
