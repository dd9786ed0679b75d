package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
)

func newServeCommand(w *world) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Run the gateway",
		Long: `Serve runs the gateway until it receives SIGTERM or SIGINT; it then finishes what is under way. A
second signal ends it at once. Without a file and without a source it starts a development gateway
that stores in the working folder, and says how to send it a first event.

` + aboutSettings,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, _, err := loadConfig(w, c.Flags())
			if err != nil {
				return err
			}
			return serve(c.Context(), w, cfg)
		},
	}
	settingFlags(c.Flags())
	return c
}

// serve runs the gateway until a signal ends it.
func serve(ctx context.Context, w *world, cfg *config.Config) error {
	var dev *development
	if len(cfg.Sources) == 0 {
		var err error
		if dev, err = develop(cfg); err != nil {
			return err
		}
	}
	log := newLogger(w, cfg)
	for _, text := range cfg.Warnings {
		log.Warn(text)
	}
	ctx, stop := untilSignal(ctx, w)
	defer stop()
	if config.Lookup(w.environ, "GOGC") == "" { // whoever sets it knows better
		defer gateway.TuneGC()()
	}
	g, err := gateway.Start(ctx, cfg, gateway.Options{Logger: log, Version: version()})
	if err != nil {
		return err
	}
	if dev != nil {
		dev.announce(w, g)
	}
	return g.Wait(ctx)
}

// sameSignal is within which a second signal is the first one again: some supervisors signal the
// process and then its group.
const sameSignal = 250 * time.Millisecond

// untilSignal returns a context that ends with the first SIGTERM or SIGINT. The second one ends the
// process at once.
func untilSignal(ctx context.Context, w *world) (context.Context, func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		s, ok := <-signals
		if !ok {
			return
		}
		cancel(fmt.Errorf("received %v", s))
		first := time.Now()
		for range signals {
			if time.Since(first) < sameSignal {
				continue
			}
			fmt.Fprintln(w.err, "second signal: ending at once")
			os.Exit(exitFailure)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// newLogger returns the logger that the configuration asks for.
func newLogger(w *world, cfg *config.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w.err, options))
	}
	return slog.New(slog.NewTextHandler(w.err, options))
}
