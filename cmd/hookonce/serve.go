package main

import (
	"context"
	"errors"
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
second signal ends it at once.

With --to alone, or with nothing, it starts a development gateway: it stores in the working folder,
delivers there, says how to send it a first event, and shows events as they come. With --provider as
well it takes those of a real provider.

` + aboutSettings,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := configInput(w, c.Flags())
			if err != nil {
				return logFailure(w, config.Outline(in), notStarted, err)
			}
			cfg, err := config.Load(in)
			if err != nil {
				return logFailure(w, config.Outline(in), notStarted, err)
			}
			return serve(c.Context(), w, cfg)
		},
	}
	settingFlags(c.Flags())
	return c
}

// serve runs the gateway until a signal ends it.
func serve(ctx context.Context, w *world, cfg *config.Config) error {
	options := gateway.Options{Version: version()}
	var dev *development
	if cfg.Development {
		var err error
		if dev, err = develop(w, cfg); err != nil {
			return logFailure(w, cfg, notStarted, err)
		}
		defer dev.show.close()
		options.Watcher = dev.show
	}
	log := newLogger(w, cfg)
	options.Logger = log
	for _, text := range cfg.Warnings {
		log.Warn(text)
	}
	ctx, stop := untilSignal(ctx, w)
	defer stop()
	if config.Lookup(w.environ, "GOGC") == "" { // whoever sets it knows better
		defer gateway.TuneGC()()
	}
	g, err := gateway.Start(ctx, cfg, options)
	if err != nil {
		return logFailure(w, cfg, notStarted, err)
	}
	if dev != nil {
		dev.announce(w, g)
	}
	return logFailure(w, cfg, "gateway: failed", g.Wait(ctx))
}

// notStarted is the message of every failure before the gateway runs.
const notStarted = "gateway: not started"

// logFailure writes an error in the format of the log, a line for every fault of a configuration, if a format
// was asked for. Otherwise the error is left for people to read.
func logFailure(w *world, cfg *config.Config, message string, err error) error {
	if err == nil || !cfg.Says("log.format") {
		return err
	}
	log := newLogger(w, cfg)
	var faults config.Problems
	if !errors.As(err, &faults) {
		log.Error(message, "error", err)
	}
	for _, f := range faults {
		log.LogAttrs(context.Background(), slog.LevelError, message, f.Attrs()...)
	}
	return &loggedError{err}
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
