package retry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Judgement is what the end of an attempt means.
type Judgement struct {
	// Result is what becomes of the work.
	Result Result
	// Signal is what the end says about the receiver, apart from this work.
	Signal Signal
	// After is how long the work has to wait at least, whatever the schedule says.
	After time.Duration
	// Reason says why the work is not done, for people. It repeats nothing that the receiver wrote and no
	// address, so that it can be kept and logged.
	Reason string
	// Kind is that in one word. Empty: the work is done.
	Kind Kind
}

// Due returns when the next attempt is made after one that ended then, if the schedule plans that wait.
func (v Judgement) Due(ended time.Time, planned time.Duration) time.Time {
	return ended.Add(max(planned, v.After))
}

// Kind is why an attempt failed, in one word of a closed set, by which failures are counted and grouped.
type Kind string

// The kinds of failures.
const (
	Status      Kind = "status"      // an answer whose status is no success
	Timeout     Kind = "timeout"     // no connection, or no answer, in time
	DNS         Kind = "dns"         // the name of the host could not be resolved
	Refused     Kind = "refused"     // nobody listens at the port
	Reset       Kind = "reset"       // the connection broke off before the answer was complete
	NoRoute     Kind = "unreachable" // no way leads to the host
	TLS         Kind = "tls"         // the certificate is not trusted, or the handshake failed
	Address     Kind = "address"     // the policy does not allow to connect there
	Invalid     Kind = "invalid"     // what came is no answer in HTTP, or none that can be used
	Unspecified Kind = "other"       // none of these
)

// Result is what becomes of the work after an attempt.
type Result int

// The results of an attempt.
const (
	Again     Result = iota // failed: tried again as the schedule says, and dead when that is used up
	Done                    // never tried again
	Dead                    // given up, whatever the schedule says
	Uncounted               // failed for a reason on our side: tried again, and with deliveries no attempt is used up
)

// Signal is what an attempt says about the receiver.
type Signal int

// The signals, those that the receiver may be ill last.
const (
	NoSignal    Signal = iota // nothing was learned
	Success                   // the receiver took the work
	Declined                  // the receiver is there, and did not take this work
	Faulty                    // it may be ill, or fail for this work: a timeout, 502, 504, no valid answer
	Busy                      // it says that it is ill: 429, 503
	Unreachable               // there was no connection, whatever the work
)

// Illness reports whether the receiver may be ill.
func (s Signal) Illness() bool { return s >= Faulty }

// Judge returns what an answer means that came at now: 2xx is done; 410 and the permanent statuses, each of which
// [CheckPermanent] allows, are dead; everything else is tried again. docs/destinations.md has the table.
func Judge(answer *http.Response, permanent []int, now time.Time) Judgement {
	status := answer.StatusCode
	if status/100 == 2 {
		return Judgement{Result: Done, Signal: Success}
	}
	v := Judgement{Signal: Declined, Reason: "status " + strconv.Itoa(status) + remark(answer), Kind: Status}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		v.Signal, v.After = Busy, retryAfter(answer.Header.Get("Retry-After"), now)
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		v.Signal = Faulty
	}
	if status == http.StatusGone || slices.Contains(permanent, status) {
		v.Result, v.After = Dead, 0
	}
	return v
}

// CheckPermanent returns an error for a status that cannot be the last word on an event. The others say that the
// receiver is ill or busy, which passes.
func CheckPermanent(status int) error {
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status/100 == 5:
		return fmt.Errorf("%d says that the destination cannot take the event now, and is always tried again; remove it", status)
	case status < 300, status > 499:
		return fmt.Errorf("%d cannot end the attempts; write statuses from 300 to 499, such as 400 and 422", status)
	}
	return nil
}

// maxAfter bounds what an answer can ask for with Retry-After.
const maxAfter = 24 * time.Hour

// retryAfter reads a Retry-After: seconds, or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), maxAfter))
	}
	return 0
}

// remark says about an answer what its status alone does not: why it counts as a failure although it is of the
// class of redirects. https://www.rfc-editor.org/rfc/rfc9110#section-15.4
func remark(answer *http.Response) string {
	switch status := answer.StatusCode; {
	case status == http.StatusNotModified:
		return ": not modified, which answers a condition; the request made none, so answer 2xx"
	case status == http.StatusMultipleChoices:
		return ": several addresses to choose from, of which none is chosen; answer 2xx"
	case status == http.StatusMovedPermanently, status == http.StatusFound, status == http.StatusSeeOther,
		status == http.StatusTemporaryRedirect, status == http.StatusPermanentRedirect:
		if answer.Header.Get("Location") == "" {
			return ": a redirect that does not say where to"
		}
		return ": redirects are not followed"
	case status/100 == 3:
		return ": no success, and no redirect either; answer 2xx"
	}
	return ""
}

// Fault is an error whose text may be shown: it repeats nothing that the receiver wrote.
type Fault struct {
	Text string
	Kind Kind
	Ours bool // the reason lies in this process
}

func (f *Fault) Error() string { return f.Text }

// uncountedDelay is how long work waits that failed for a reason on our side.
const uncountedDelay = 30 * time.Second

// JudgeError returns what it means that an attempt, which took that long, got no answer.
func JudgeError(err error, took time.Duration) Judgement {
	v := Judgement{Signal: Faulty}
	v.Kind, v.Reason = cause(err, took)
	_, here := ours(err)
	switch {
	case here:
		v.Result, v.Signal, v.After = Uncounted, NoSignal, uncountedDelay
	case unconnected(err):
		v.Signal = Unreachable
	}
	return v
}

// lacks are what a process or its machine may have none of any more.
var lacks = []syscall.Errno{
	syscall.EMFILE, syscall.ENFILE, // file descriptors
	syscall.ENOBUFS, syscall.ENOMEM, // memory
}

// ours reports whether an attempt failed for a reason that lies in this process or its machine, and names it. No work dies of
// that.
func ours(err error) (why string, is bool) {
	if fault, ok := errors.AsType[*Fault](err); ok {
		return fault.Text, fault.Ours
	}
	dns, _ := errors.AsType[*net.DNSError](err)
	for _, lack := range lacks {
		// The resolver's error has what the system said as a text, at its end.
		if errors.Is(err, lack) || dns != nil && strings.HasSuffix(dns.Err, lack.Error()) {
			return lack.Error() + " on our side", true
		}
	}
	if outOfPorts(err) {
		return syscall.EADDRNOTAVAIL.Error() + " on our side", true
	}
	return "", false
}

// outOfPorts reports whether there was no local port to dial from. For an address of version 6 the same
// error says that the machine has no way there at all, which no waiting mends.
func outOfPorts(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	if !ok || !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return false
	}
	to, ok := dial.Addr.(*net.TCPAddr)
	return ok && to.IP.To4() != nil
}

// unconnected reports whether there was no connection, so that the work had no part in the failure.
func unconnected(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}

// cause names what kept an attempt from being answered, in one word and in a few for people.
func cause(err error, took time.Duration) (Kind, string) {
	var (
		fault   *Fault
		dns     *net.DNSError
		header  tls.RecordHeaderError
		cert    *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		late    net.Error
	)
	why, here := ours(err)
	switch {
	case errors.As(err, &fault):
		return fault.Kind, fault.Text
	case here:
		return Unspecified, why
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout, fmt.Sprintf("timeout after %v", took)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Timeout, "timeout while connecting"
	case errors.Is(err, syscall.ETIMEDOUT): // said by the system, of a connection that was made or not
		return Timeout, "connection timed out"
	case errors.As(err, &late) && late.Timeout() && !errors.As(err, &dns): // as of a TLS handshake that is not answered
		return Timeout, "timeout while connecting"
	case errors.As(err, &dns):
		return DNS, "host name could not be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused, "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Reset, "connection reset"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		return NoRoute, "host unreachable"
	case errors.As(err, &cert), errors.As(err, &unknown):
		return TLS, "certificate not trusted"
	case errors.As(err, &header), alerted(err):
		return TLS, "TLS handshake failed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed): // by net/http, which then hides what it read
		return Reset, "connection closed before the answer"
	}
	return Invalid, "no valid HTTP answer"
}

// alerted reports whether a TLS handshake was refused, by us or by the other side. Over TCP package tls says so with the
// operation alone: the alert is of a type that it does not export.
func alerted(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error")
}
