package dynamostore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
)

// network carries requests to the service, and loses some of them, or their answers, where a test says so.
type network struct {
	mu    sync.Mutex
	plan  []loss                   // of calls to come, each of which strikes once
	lost  map[string]loss          // calls whose every sending fails, by what names them
	noise *noise                   // nil: there is none
	sent  map[string]int           // how often each operation was sent, to tests that count
	then  func()                   // runs once, after the next loss
	kept  map[string]*http.Request // the first request of each operation that is kept
}

// loss is what happens to the next call of an operation.
type loss struct {
	operations string // words of which the operation is one
	persisted  bool   // the first sending arrives
	once       bool   // only that sending is lost, and not its repetitions
	// then is what the repetitions are answered; nil: they are lost as well. If answered, so is the
	// first sending, and none is lost.
	then     func(r *http.Request) (*http.Response, error)
	answered bool
}

// unreachable is what a client says that reaches nobody.
func unreachable(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// refusing answers with an error of the service.
func refusing(kind, more string) func(r *http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		return refuse(r, `{"__type":"com.amazonaws.dynamodb.v20120810#`+kind+`","message":"no"`+more+`}`)
	}
}

// noise strikes single sendings, some out of a hundred.
type noise struct {
	mu                             sync.Mutex
	random                         *rand.Rand
	throttled, conflicts           int
	lost, arrived                  int
	struckThrottled, struckUnknown int
}

var errCut = errors.New("connection reset by the test")

const writes = "PutItem UpdateItem DeleteItem"

// fail loses the next write that is no transaction, and then the look at what came of it.
func (n *network) fail(persisted bool) {
	n.lose(loss{operations: writes, persisted: persisted}, loss{operations: "GetItem", persisted: false})
}

// failCommit loses the next transaction, and if it arrived also the trace that would find that out.
func (n *network) failCommit(persisted bool) {
	n.lose(loss{operations: "TransactWriteItems", persisted: persisted})
	if persisted {
		n.fail(false)
	}
}

// lose appends to the plan. Losses strike in its order.
func (n *network) lose(l ...loss) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.plan = append(n.plan, l...)
}

// loseOne is lose for single sendings.
func (n *network) loseOne(l loss) {
	l.once = true
	n.lose(l)
}

// between has f run after the next loss.
func (n *network) between(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.then = f
}

// keep keeps a copy of the next request of the operation, and returns what sends it.
func (n *network) keep(operation string) (send func() (status int, body string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept = map[string]*http.Request{operation: nil}
	return func() (int, string) {
		n.mu.Lock()
		r := n.kept[operation]
		n.mu.Unlock()
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body)
	}
}

// copied keeps a copy of a request that is to be kept.
func (n *network) copied(operation string, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kept, wanted := n.kept[operation]; !wanted || kept != nil {
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	c := r.Clone(context.Background())
	c.Body = io.NopCloser(bytes.NewReader(body))
	n.kept[operation] = c
}

// after runs what is to run after a loss.
func (n *network) after() {
	n.mu.Lock()
	then := n.then
	n.then = nil
	n.mu.Unlock()
	if then != nil {
		then()
	}
}

// RoundTrip implements [http.RoundTripper].
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	n.copied(operation, r)
	strike, arrives, answered := n.strikes(operation, call(r))
	if answered != nil {
		return answered(r)
	}
	if n.noise != nil && !strike {
		if answer := n.noise.refusal(operation); answer != "" {
			return refuse(r, answer)
		}
		strike, arrives = n.noise.strikes(operation)
	}
	if strike {
		defer n.after()
	}
	if strike && !arrives {
		return nil, errCut
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strike {
		return answer, err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return nil, errCut
}

// strikes reports whether the sending fails, and whether it arrives all the same.
// Or it returns what it is answered.
func (n *network) strikes(operation, call string) (strike, arrives bool, answered func(*http.Request) (*http.Response, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sent == nil {
		n.sent, n.lost = map[string]int{}, map[string]loss{}
	}
	n.sent[operation]++
	if l, known := n.lost[call]; known {
		return l.then == nil, false, l.then
	}
	if len(n.plan) == 0 || !strings.Contains(n.plan[0].operations, operation) {
		return false, false, nil
	}
	l := n.plan[0]
	if !l.once {
		n.lost[call] = l
	}
	n.plan = n.plan[1:]
	if l.answered {
		return false, false, l.then
	}
	return true, l.persisted, nil
}

// call names what is one call to the store: a transaction has a token, which its repetitions bear, and any other request one
// name for all that the client sends.
func call(r *http.Request) string {
	var in struct{ ClientRequestToken string }
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if json.Unmarshal(body, &in) == nil && in.ClientRequestToken != "" {
		return in.ClientRequestToken
	}
	return r.Header.Get("Amz-Sdk-Invocation-Id")
}

// strikes leaves alone what purges are made of, which suites call to clean up.
func (o *noise) strikes(operation string) (strike, arrives bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if operation == "Scan" || operation == "DeleteItem" {
		return false, false
	}
	k := o.random.IntN(100)
	if k >= o.lost+o.arrived {
		return false, false
	}
	o.struckUnknown++
	return true, k >= o.lost
}

// refusal is the error that the service turns the sending away with, if it does.
func (o *noise) refusal(operation string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.random.IntN(100)
	switch {
	case k < o.throttled:
		o.struckThrottled++
		return `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"too much"}`
	case k < o.throttled+o.conflicts && operation == "TransactWriteItems":
		o.struckThrottled++
		return `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[{"Code":"TransactionConflict"}]}`
	case k < o.throttled+o.conflicts && strings.Contains(writes, operation):
		o.struckThrottled++
		return `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"a transaction is under way"}`
	}
	return ""
}

func refuse(r *http.Request, body string) (*http.Response, error) {
	return &http.Response{
		Status: "400 Bad Request", StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "Content-Length": {fmt.Sprint(len(body))}},
		Body:   io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}, nil
}
