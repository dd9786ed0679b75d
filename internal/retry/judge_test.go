package retry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

const minute = time.Minute

// now is Sun, 01 Feb 2026 00:00:00 GMT.
var now = time.Unix(1769904000, 0)

// What each status means, for deliveries as for requests of relays.
func TestJudge(t *testing.T) {
	permanent := []int{301, 400, 422}
	for _, c := range []struct {
		status int
		header string // Retry-After, or Location of a redirect
		want   Judgement
	}{
		{200, "", Judgement{Result: Done, Signal: Success}},
		{201, "/made", Judgement{Result: Done, Signal: Success}},
		{204, "60", Judgement{Result: Done, Signal: Success}},
		{299, "", Judgement{Result: Done, Signal: Success}},
		{101, "", Judgement{Again, Declined, 0, "status 101", Status}},
		{300, "", Judgement{Again, Declined, 0, "status 300: several addresses to choose from, of which none is chosen; answer 2xx", Status}},
		{301, "/", Judgement{Dead, Declined, 0, "status 301: redirects are not followed", Status}}, // configured
		{302, "/", Judgement{Again, Declined, 0, "status 302: redirects are not followed", Status}},
		{303, "/", Judgement{Again, Declined, 0, "status 303: redirects are not followed", Status}},
		{307, "/", Judgement{Again, Declined, 0, "status 307: redirects are not followed", Status}},
		{308, "/", Judgement{Again, Declined, 0, "status 308: redirects are not followed", Status}},
		{302, "", Judgement{Again, Declined, 0, "status 302: a redirect that does not say where to", Status}},
		{304, "", Judgement{Again, Declined, 0, "status 304: not modified, which answers a condition; the request made none, so answer 2xx", Status}},
		{304, "/", Judgement{Again, Declined, 0, "status 304: not modified, which answers a condition; the request made none, so answer 2xx", Status}},
		{305, "/", Judgement{Again, Declined, 0, "status 305: no success, and no redirect either; answer 2xx", Status}},
		{306, "", Judgement{Again, Declined, 0, "status 306: no success, and no redirect either; answer 2xx", Status}},
		{399, "/", Judgement{Again, Declined, 0, "status 399: no success, and no redirect either; answer 2xx", Status}},
		{400, "", Judgement{Dead, Declined, 0, "status 400", Status}}, // configured
		{401, "", Judgement{Again, Declined, 0, "status 401", Status}},
		{404, "60", Judgement{Again, Declined, 0, "status 404", Status}},
		{408, "", Judgement{Again, Declined, 0, "status 408", Status}},
		{410, "60", Judgement{Dead, Declined, 0, "status 410", Status}}, // always
		{422, "", Judgement{Dead, Declined, 0, "status 422", Status}},   // configured
		{425, "", Judgement{Again, Declined, 0, "status 425", Status}},
		{429, "", Judgement{Again, Busy, 0, "status 429", Status}},
		{429, "60", Judgement{Again, Busy, minute, "status 429", Status}},
		{500, "60", Judgement{Again, Declined, 0, "status 500", Status}},
		{502, "60", Judgement{Again, Faulty, 0, "status 502", Status}},
		{503, "", Judgement{Again, Busy, 0, "status 503", Status}},
		{503, "soon", Judgement{Again, Busy, 0, "status 503", Status}},
		{503, "Sun, 01 Feb 2026 00:02:00 GMT", Judgement{Again, Busy, 2 * minute, "status 503", Status}},
		{503, "Sat, 31 Jan 2026 00:02:00 GMT", Judgement{Again, Busy, 0, "status 503", Status}},
		{503, "604800", Judgement{Again, Busy, maxAfter, "status 503", Status}},
		{504, "", Judgement{Again, Faulty, 0, "status 504", Status}},
		{999, "", Judgement{Again, Declined, 0, "status 999", Status}},
	} {
		answer := &http.Response{StatusCode: c.status, Header: http.Header{}}
		if c.header != "" {
			answer.Header.Set("Retry-After", c.header)
			answer.Header.Set("Location", c.header)
		}
		if got := Judge(answer, permanent, now); got != c.want {
			t.Errorf("%d, %q: %+v, want %+v", c.status, c.header, got, c.want)
		}
	}
}

// What can end the attempts is the receiver's last word on an event: none of these says that it is ill.
func TestCheckPermanent(t *testing.T) {
	for status := range 700 {
		allowed := status >= 300 && status < 500 && !slices.Contains([]int{408, 425, 429}, status)
		if err := CheckPermanent(status); (err == nil) != allowed {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// FuzzRetryAfter: whatever an answer asks for, its sender is left alone for a day at most, and never for a
// time that lies in the past.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"", "0", "60", "-1", "1e3", "99999999999999999999", "Wed, 21 Oct 2026 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "soon"} {
		f.Add(value, 503, int64(1700000000))
		f.Add(value, 429, int64(0))
	}
	f.Fuzz(func(t *testing.T, value string, status int, now int64) {
		answer := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {value}}}
		wait := Judge(answer, nil, time.Unix(now, 0)).After
		if wait < 0 || wait > maxAfter || wait > 0 && status != 429 && status != 503 {
			t.Fatalf("%q with status %d makes us wait %v", value, status, wait)
		}
	})
}

// dial is the failure of a connection to an address.
func dial(address string, errno syscall.Errno) error {
	return fmt.Errorf("attempt: %w", &net.OpError{
		Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP(address), Port: 80},
		Err: os.NewSyscallError("connect", errno),
	})
}

// resolve is the failure of a connection to a name, whose resolver gets no socket.
func resolve(t *testing.T, errno syscall.Errno) error {
	t.Helper()
	names := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "udp", Err: os.NewSyscallError("socket", errno)}
	}}
	_, err := (&net.Dialer{Resolver: names}).DialContext(t.Context(), "tcp", "ledger.invalid:443")
	return err
}

// silent is what net/http says of a TLS handshake that was not answered.
type silent struct{}

func (silent) Error() string   { return "net/http: TLS handshake timeout" }
func (silent) Timeout() bool   { return true }
func (silent) Temporary() bool { return true }

// No work dies of what this process or its machine lacks. An address that this machine has no way to is not a
// passing shortage of ports: it counts as a failure, so that the work ends some day and the breaker learns of it.
func TestJudgeError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Judgement
	}{
		{dial("192.0.2.1", syscall.EADDRNOTAVAIL), Judgement{Uncounted, NoSignal, minute / 2, "cannot assign requested address on our side", Unspecified}},
		{dial("2001:db8::1", syscall.EADDRNOTAVAIL), Judgement{Again, Unreachable, 0, "host unreachable", NoRoute}},
		{dial("::1", syscall.EADDRNOTAVAIL), Judgement{Again, Unreachable, 0, "host unreachable", NoRoute}},
		{dial("2001:db8::1", syscall.EMFILE), Judgement{Uncounted, NoSignal, minute / 2, "too many open files on our side", Unspecified}},
		{resolve(t, syscall.EMFILE), Judgement{Uncounted, NoSignal, minute / 2, "too many open files on our side", Unspecified}},
		{resolve(t, syscall.ENOBUFS), Judgement{Uncounted, NoSignal, minute / 2, "no buffer space available on our side", Unspecified}},
		{resolve(t, syscall.ECONNREFUSED), Judgement{Again, Unreachable, 0, "host name could not be resolved", DNS}},
		{dial("192.0.2.1", syscall.ECONNREFUSED), Judgement{Again, Unreachable, 0, "connection refused", Refused}},
		{&Fault{Text: "not allowed", Kind: Address}, Judgement{Again, Faulty, 0, "not allowed", Address}},
		{&net.OpError{Op: "dial", Err: &Fault{Text: "not allowed", Kind: Address}}, Judgement{Again, Unreachable, 0, "not allowed", Address}},
		{&Fault{Text: "panic", Kind: Unspecified, Ours: true}, Judgement{Uncounted, NoSignal, minute / 2, "panic", Unspecified}},
		{&net.DNSError{Err: "no such host", Name: "fake-secret.invalid"}, Judgement{Again, Unreachable, 0, "host name could not be resolved", DNS}},
		{fmt.Errorf("waiting: %w", context.DeadlineExceeded), Judgement{Again, Faulty, 0, "timeout after 3s", Timeout}},
		{&net.OpError{Op: "read", Err: syscall.ETIMEDOUT}, Judgement{Again, Faulty, 0, "connection timed out", Timeout}},
		{silent{}, Judgement{Again, Faulty, 0, "timeout while connecting", Timeout}},
		{&net.DNSError{Err: "i/o timeout", IsTimeout: true}, Judgement{Again, Unreachable, 0, "host name could not be resolved", DNS}},
		{&net.OpError{Op: "write", Net: "tcp", Err: net.ErrClosed}, Judgement{Again, Faulty, 0, "connection closed before the answer", Reset}},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, Judgement{Again, Faulty, 0, "TLS handshake failed", TLS}},
		{syscall.ECONNRESET, Judgement{Again, Faulty, 0, "connection reset", Reset}},
		{errors.New("malformed HTTP response \"fake-secret\""), Judgement{Again, Faulty, 0, "no valid HTTP answer", Invalid}},
	} {
		if got := JudgeError(c.err, 3*time.Second); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.err, got, c.want)
		}
	}
}

// The next attempt is made when the schedule says, and not before the receiver asked for it.
func TestDue(t *testing.T) {
	ended := time.Unix(1700000000, 0)
	for _, c := range []struct{ planned, after, want time.Duration }{
		{time.Minute, 0, time.Minute},
		{time.Minute, time.Second, time.Minute},
		{time.Minute, time.Hour, time.Hour},
		{0, time.Hour, time.Hour},
		{0, -time.Hour, 0}, // never in the past
		{0, 0, 0},
	} {
		if got := (Judgement{After: c.after}).Due(ended, c.planned).Sub(ended); got != c.want {
			t.Errorf("planned %v, asked for %v: due after %v, want %v", c.planned, c.after, got, c.want)
		}
	}
}
