package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hookonce/hookonce/internal/connlimit"
	"github.com/hookonce/hookonce/internal/loglimit"
)

// limits are those of every connection. Senders are machines with small requests: a slow one is a fault
// or an attack.
type limits struct {
	header, read, write, idle time.Duration
	headerBytes               int
	connections               connlimit.Options
}

func defaultLimits(connections connlimit.Limits, spares int) limits {
	return limits{
		header:      5 * time.Second,
		read:        15 * time.Second,
		write:       30 * time.Second,
		idle:        2 * time.Minute,
		headerBytes: 32 << 10,
		connections: connlimit.Options{Limits: connections, Spares: spares, LargeHeaders: maxLargeHeaders, HeaderLines: maxHeaderLines},
	}
}

// listener is a bound address and, once it serves, its server.
type listener struct {
	*connlimit.Listener
	name   string
	log    *slog.Logger
	limits limits
	server *http.Server
	// certificates is what TLS is spoken with. Nil: it is not spoken.
	certificates atomic.Pointer[tls.Config]
	// handler answers the requests.
	handler atomic.Pointer[http.Handler]
	served  chan struct{} // closed when the server has ended
	// storing says how many requests are being stored, and asking for how many a service is at work. Nil: none ever.
	storing, asking func() int
}

// listen binds the address of the setting called name. With certificates it speaks TLS, beneath
// the limits: these count what is said, and the handshake is a part of the time for the first header.
func (o *Options) listen(name, address string, certificates *tls.Config, lim limits, metrics *connectionMetrics) (*listener, error) {
	l, err := o.Listen("tcp", address)
	log := o.strange
	if err == nil {
		own := &listener{name: name, log: log, limits: lim}
		own.certificates.Store(certificates)
		own.limits.connections.Waits = waits(l) // which what speaks TLS cannot say
		if certificates != nil {
			l = tls.NewListener(l, &tls.Config{GetConfigForClient: own.terms})
		}
		own.limits.connections.Watcher = &connectionWatcher{name: name, metrics: metrics, log: log}
		own.Listener = connlimit.New(l, own.limits.connections)
		metrics.show(name, own.Listener)
		return own, nil
	}
	return nil, ListenError(name, address, err)
}

// ListenError says why an address cannot be listened on, and what to do. name is that of the setting, and of the flag.
func ListenError(name, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: the address %s is taken by another program; stop that program, or choose another address with --%s", name, address, name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: this user may not listen on %s; choose a port above 1023 with --%s, or give the program the capability to bind low ports", name, address, name)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: this machine does not have the address %s; choose another one with --%s", name, address, name)
	}
	return fmt.Errorf("%s: %s cannot be listened on: %w; choose another address with --%s", name, address, err, name)
}

// terms are those of a new connection: the certificate that is shown at the moment, and which others have to be shown, if
// any.
func (l *listener) terms(*tls.ClientHelloInfo) (*tls.Config, error) {
	c := l.certificates.Load()
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: c.Certificates,
		ClientAuth: c.ClientAuth, ClientCAs: c.ClientCAs,
	}, nil
}

// answer has the handler of the moment answer. The server does not see that TLS is spoken beneath it.
func (l *listener) answer(w http.ResponseWriter, r *http.Request) {
	if l.certificates.Load() != nil {
		r.TLS = &tls.ConnectionState{HandshakeComplete: true}
	}
	(*l.handler.Load()).ServeHTTP(w, r)
}

// serve answers requests in the background. failed is called when that ends for another reason than
// close. Another call has h answer from the next request on.
func (l *listener) serve(h http.Handler, failed func(error)) {
	if l.handler.Swap(&h) != nil {
		return
	}
	l.server = &http.Server{
		Handler:           http.HandlerFunc(l.answer),
		ReadHeaderTimeout: l.limits.header,
		ReadTimeout:       l.limits.read,
		WriteTimeout:      l.limits.write,
		IdleTimeout:       l.limits.idle,
		MaxHeaderBytes:    l.limits.headerBytes,
		ErrorLog:          loglimit.Std(l.log, slog.LevelDebug, "gateway: a connection was given up", "listener", l.name),
		Protocols:         new(http.Protocols),
	}
	l.server.Protocols.SetHTTP1(true) // alone: the limits are those of connections with one request at a time
	l.Attach(l.server)
	l.served = make(chan struct{})
	go func() {
		defer close(l.served)
		if err := l.server.Serve(l.Listener); !errors.Is(err, http.ErrServerClosed) {
			failed(fmt.Errorf("%s: %s is not served any more: %w", l.name, l.Addr(), err))
		}
	}()
}

// close stops listening and waits for the requests under way. When ctx ends first they are cut off,
// which is an error if some of them were being stored. One whose body nobody finished sending, or
// whose answer nobody reads, loses nothing.
func (l *listener) close(ctx context.Context) error {
	switch {
	case l == nil:
		return nil
	case l.server == nil:
		return l.Listener.Close()
	}
	err := l.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(l.cutOff(err), l.server.Close())
	}
	<-l.served
	return err
}

func (l *listener) cutOff(cause error) error {
	n := 0
	if l.asking != nil {
		n = l.asking()
	}
	if n > 0 {
		l.log.Warn("gateway: requests were cut off while their service was at work: what came of them is not known, and a copy has the service asked again; give shutdown_timeout more than the service needs",
			"listener", l.name, "requests", n, "cause", cause)
	}
	if l.storing != nil {
		if n := l.storing(); n > 0 {
			return fmt.Errorf("%s: %d requests were cut off while they were being stored: %w", l.name, n, cause)
		}
	}
	if n == 0 {
		l.log.Warn("gateway: slow requests were cut off; nothing of them was in doubt", "listener", l.name, "cause", cause)
	}
	return nil
}
