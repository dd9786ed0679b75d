package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/cmd/hookonce/internal/outbox"
	"github.com/hookonce/hookonce/dashboard"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
)

const dashboardHelp = `Dashboard shows in a browser what the library keeps in an application's database: claims that are stuck,
failed or dead, the outbox, guards, and what 'hookonce reconcile effects' found. It is for programs that use the
library, or the SQL functions, without a gateway; a gateway has a dashboard of its own, on its admin listener.

It answers this machine alone, because it has no login: from elsewhere, use a tunnel, such as
ssh -L 8082:127.0.0.1:8082. A Go program can mount the same in its own admin mux, behind its own login:
see package dashboard.

It only reads, unless --actions lets whoever looks have a dead effect carried out again, or give back a claim
that is stuck. Each takes a reason, which is logged. Nothing is asked of the database while nobody looks.`

const dashboardExample = `  hookonce dashboard --store postgres://app@localhost/shop
  hookonce dashboard --store sqlite:shop.db --listen 127.0.0.1:9000 --actions`

func newDashboardCommand(w *env) *cobra.Command {
	var listen string
	var actions bool
	c := &cobra.Command{
		Use:     "dashboard --store DSN [flags]",
		Short:   "Show what the library keeps in a database, in a browser",
		Long:    dashboardHelp,
		Example: dashboardExample,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := loopback(listen); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			cfg, err := loadStoreConfig(w, c.Flags())
			if err != nil {
				return err
			}
			return showDashboard(c.Context(), w, cfg, listen, actions)
		},
	}
	storeFlags(c)
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8082", "`address` to listen on, of this machine; port 0 is any that is free")
	c.Flags().BoolVar(&actions, "actions", false, "let whoever looks change something: revive dead effects, give back stuck claims")
	return c
}

// loopback returns an error unless only this machine can reach the address.
func loopback(listen string) error {
	addr, err := netip.ParseAddrPort(listen)
	if err != nil {
		return errors.New("--listen: write an address and a port, such as 127.0.0.1:8082")
	}
	if !addr.Addr().IsLoopback() {
		return fmt.Errorf("--listen %s: others could look, and there is no login: listen on 127.0.0.1 or [::1], and use a tunnel or a mount of your own (package dashboard)", listen)
	}
	return nil
}

const dashboardNotStarted = "dashboard: not started"

// showDashboard serves until a signal ends it.
func showDashboard(ctx context.Context, w *env, cfg *config.Config, listen string, actions bool) error {
	ctx, stop := untilSignal(ctx, w, nil, nil)
	defer stop()
	store, end, err := outbox.Open(ctx, cfg)
	if err != nil {
		return logFailure(w, cfg, dashboardNotStarted, gateway.Explain(cfg.Store, err))
	}
	defer end()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return logFailure(w, cfg, dashboardNotStarted, gateway.ListenError("listen", listen, err))
	}
	log := newLogger(w, cfg, cfg.LogLevel)
	server := &http.Server{
		Handler: dashboard.Handler(store, dashboard.Local, dashboard.WithLogger(log), dashboard.WithVersion(version()),
			dashboard.WithActions(func(*http.Request) bool { return actions })),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
	}
	ended := context.AfterFunc(ctx, func() { server.Close() }) // pages are short, and asked for again
	defer ended()
	fmt.Fprintf(w.out, "http://%s/ shows %s\n", l.Addr(), cfg.Store.String())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return logFailure(w, cfg, "dashboard: failed", err)
	}
	return nil
}
