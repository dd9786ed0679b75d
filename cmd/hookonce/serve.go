package main

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/settings"
)

func newServeCommand(w *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Run the gateway",
		Long: `Serve runs the gateway until it receives SIGTERM or SIGINT; it then finishes what is under way. A
second signal ends the delay that shutdown_delay asks for, or the gateway at once. SIGHUP has it read
its configuration again, like 'hookonce reload'.

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
			return serve(c.Context(), w, cfg, func() (*config.Config, error) {
				return reloadConfig(w, c.Flags(), in.Path)
			})
		},
	}
	settingFlags(c.Flags())
	return c
}

// serve runs the gateway until a signal ends it. load reads its configuration again.
func serve(ctx context.Context, w *env, cfg *config.Config, load func() (*config.Config, error)) error {
	options := gateway.Options{Version: version(), Load: load, Level: new(slog.LevelVar)}
	var dev *development
	if cfg.Development {
		var err error
		if dev, err = develop(w, cfg); err != nil {
			return logFailure(w, cfg, notStarted, err)
		}
		defer dev.show.close()
		options.Watcher, options.Load = dev.show, nil
	}
	options.Level.Set(cfg.LogLevel)
	log := newLogger(w, cfg, options.Level)
	options.Logger = log
	for _, text := range cfg.Warnings {
		log.Warn(text)
	}
	signals, ctx, stop := followSignals(ctx, w, cfg.Development)
	defer stop()
	if settings.Lookup(w.environ, "GOGC") == "" { // whoever sets it knows better
		defer gateway.TuneGC()()
	}
	if settings.Lookup(w.environ, "GOMEMLIMIT") == "" {
		before := debug.SetMemoryLimit(-1)
		options.Memory = func(bytes int64) { debug.SetMemoryLimit(bytes) }
		defer debug.SetMemoryLimit(before)
	}
	g, err := gateway.Start(ctx, cfg, options)
	if err != nil {
		return logFailure(w, cfg, notStarted, err)
	}
	signals.steer(ctx, g)
	if err := notifyReady(w); err != nil {
		log.Warn("gateway: " + err.Error())
	}
	gateway.GiveBack()
	if dev != nil {
		dev.announce(w, g)
	}
	return logFailure(w, cfg, "gateway: failed", g.Wait(ctx))
}

// notStarted is the message of every failure before the gateway runs.
const notStarted = "gateway: not started"
