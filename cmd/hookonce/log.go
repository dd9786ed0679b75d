package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/settings"
)

// logFailure writes an error in the format of the log, a line for every fault of a configuration, if a format
// was asked for. Otherwise the error is left for people to read.
func logFailure(w *env, cfg *config.Config, message string, err error) error {
	if err == nil || !cfg.Says("log.format") {
		return err
	}
	log := newLogger(w, cfg, cfg.LogLevel)
	var faults settings.Faults
	if !errors.As(err, &faults) {
		log.Error(message, "error", err)
	}
	for _, f := range faults {
		log.LogAttrs(context.Background(), slog.LevelError, message, f.Attrs()...)
	}
	return &loggedError{err}
}

// newLogger returns the logger that the configuration asks for, of what is least or above.
func newLogger(w *env, cfg *config.Config, least slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: least}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w.err, options))
	}
	return slog.New(slog.NewTextHandler(w.err, options))
}
