package deliver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

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
