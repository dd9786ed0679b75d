// Package dynamofake is a stand-in for Amazon DynamoDB in tests: one table in memory after the other, behind the service's
// HTTP and JSON, one request after the other. It has the operations and the parts of the expressions that package dynamostore
// and its tests send, refuses what it does not know, and is held against dynalite, a larger stand-in without transactions.
package dynamofake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is the stand-in. All that it does it does one after the other.
type Server struct {
	// Clock is where it takes the time from, for the tokens of transactions. The default is [time.Now]. It is set
	// before the first request.
	Clock func() time.Time

	mu     sync.Mutex
	tables map[string]*table
	tokens map[string]token
	http   *httptest.Server
}

// New returns a server that is not started.
func New() *Server {
	return &Server{Clock: time.Now, tables: map[string]*table{}, tokens: map[string]token{}}
}

// Start starts a server on a free port of the loopback address, which ends with the test.
func Start(t testing.TB) *Server {
	s := New()
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

// URL is where the server is.
func (s *Server) URL() string { return s.http.URL }

// failure is an error as the service tells it.
type failure struct {
	Type    string   `json:"__type"`
	Message string   `json:"message"`
	Item    values   `json:"Item,omitempty"`
	Reasons []reason `json:"CancellationReasons,omitempty"`
}

// Error implements error.
func (f *failure) Error() string { return f.Type + ": " + f.Message }

func fail(kind, format string, args ...any) *failure {
	return &failure{Type: "com.amazonaws.dynamodb.v20120810#" + kind, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *failure {
	return fail("ValidationException", format, args...)
}

// operations are the ones that the server knows, by the last word of the header X-Amz-Target.
var operations = map[string]func(*Server, []byte) (any, *failure){
	"CreateTable":               answer((*Server).createTable),
	"DeleteTable":               answer((*Server).deleteTable),
	"DescribeTable":             answer((*Server).describeTable),
	"UpdateTable":               answer((*Server).updateTable),
	"UpdateTimeToLive":          answer((*Server).updateTimeToLive),
	"DescribeTimeToLive":        answer((*Server).describeTimeToLive),
	"DescribeContinuousBackups": answer((*Server).describeBackups),
	"GetItem":                   answer((*Server).getItem),
	"PutItem":                   answer((*Server).putItem),
	"UpdateItem":                answer((*Server).updateItem),
	"DeleteItem":                answer((*Server).deleteItem),
	"Scan":                      answer((*Server).scan),
	"TransactWriteItems":        answer((*Server).transactWriteItems),
}

// answer has an operation read its request.
func answer[In any](operation func(*Server, In) (any, *failure)) func(*Server, []byte) (any, *failure) {
	return func(s *Server, body []byte) (any, *failure) {
		var in In
		dec := json.NewDecoder(strings.NewReader(string(body)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			return nil, fail("SerializationException", "%v", err)
		}
		return operation(s, in)
	}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := readAll(r)
	if err != nil {
		return // the peer is gone
	}
	var out any
	refused := fail("UnknownOperationException", "there is no operation %q here", name)
	if operation := operations[name]; operation != nil {
		s.mu.Lock()
		out, refused = operation(s, body)
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if refused != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = refused
	}
	_ = json.NewEncoder(w).Encode(out)
}
