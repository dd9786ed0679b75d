package deliver

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
	"syscall"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
)

// judge makes o what the answer's status says, and says what it shows. docs/destinations.md has the table.
func (d *Deliverer) judge(o *journal.Outcome, dest *destination, w *journal.Work, answer *http.Response) finding {
	o.Status = answer.StatusCode
	if o.Status/100 == 2 {
		o.State = journal.Done
		return finding{verdict: success}
	}
	o.Error = statusError(answer)
	if o.Status == http.StatusGone || slices.Contains(dest.permanent, o.Status) {
		o.State = journal.Dead
		return finding{verdict: statusVerdict(o.Status), final: true}
	}
	after := outgoing.RetryAfter(answer, o.Started.Add(o.Duration))
	d.retry(o, dest, w, after)
	return finding{verdict: statusVerdict(o.Status), after: after}
}

// retry makes o a failure: due again as the schedule says, but not before the destination asked for,
// or dead when no attempt is left or the next would come after the time to give up. One that itself
// began after that time, re-driven or after a long wait, has its whole schedule.
func (d *Deliverer) retry(o *journal.Outcome, dest *destination, w *journal.Work, atLeast time.Duration) {
	delay, ok := dest.schedule.Next(w.Tries, d.opt.Rand())
	due := o.Started.Add(o.Duration + max(delay, atLeast))
	if end := w.ReceivedAt.Add(dest.giveUp); dest.giveUp > 0 && !o.Started.After(end) && due.After(end) {
		ok = false
	}
	if !ok {
		o.State = journal.Dead
		return
	}
	o.State, o.Due = journal.Failed, due
}

// statusVerdict is what the status of a failure says about the destination. Only some mean that other events
// would fail as well.
func statusVerdict(status int) verdict {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return busy
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return faulty
	}
	return declined
}

// unconnected reports whether there was no connection, so that the event had no part in the failure.
func unconnected(err error) bool {
	var dial *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &dns)
}

// faultDelay is how long an attempt waits that failed for something on our side.
const faultDelay = 30 * time.Second

// ourFault reports whether an attempt failed for a reason that lies in this process or its machine. No
// event dies of that.
func ourFault(err error) bool {
	return slices.ContainsFunc([]error{
		errPanic,
		syscall.EMFILE, syscall.ENFILE, // out of file descriptors
		syscall.ENOBUFS, syscall.ENOMEM, // out of memory
	}, func(fault error) bool { return errors.Is(err, fault) }) || outOfPorts(err)
}

// outOfPorts reports whether there was no local port to dial from. For an address of version 6 the same
// error says that the machine has no way there at all, which no waiting mends.
func outOfPorts(err error) bool {
	var dial *net.OpError
	if !errors.Is(err, syscall.EADDRNOTAVAIL) || !errors.As(err, &dial) {
		return false
	}
	to, ok := dial.Addr.(*net.TCPAddr)
	return ok && to.IP.To4() != nil
}

func statusError(answer *http.Response) string {
	text := "status " + strconv.Itoa(answer.StatusCode)
	if remark := outgoing.Remark(answer); remark != "" {
		text += ": " + remark
	}
	return text
}

// cause names what kept an attempt from being answered, in a few words for people. Texts that the
// other side had a hand in are not repeated.
func cause(err error, timeout time.Duration) string {
	var (
		dns     *net.DNSError
		header  tls.RecordHeaderError
		cert    *tls.CertificateVerificationError
		alert   tls.AlertError
		unknown x509.UnknownAuthorityError
		refused *refusal
		errno   syscall.Errno
	)
	switch {
	case errors.Is(err, errPanic):
		return err.Error()
	case ourFault(err) && errors.As(err, &errno):
		return errno.Error() + " on our side"
	case errors.Is(err, errTooLong):
		return err.Error()
	case errors.As(err, &refused):
		return refused.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("timeout after %v", timeout)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout while connecting"
	case errors.As(err, &dns):
		return "host name could not be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		return "host unreachable"
	case errors.As(err, &cert), errors.As(err, &unknown):
		return "certificate not trusted"
	case errors.As(err, &header), errors.As(err, &alert):
		return "TLS handshake failed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed before the answer"
	}
	return "no valid HTTP answer"
}
