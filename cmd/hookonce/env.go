package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/internal/closest"
	"github.com/hookonce/hookonce/internal/settings"
)

// env is what the commands see of the process around them. Nothing else reads os.Args or
// os.Environ.
type env struct {
	args     []string
	environ  []string
	in       io.Reader
	out, err io.Writer
}

// The exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// loggedError is a failure that was said already, in the log.
type loggedError struct{ error }

// usageError says that a command line makes no sense.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.command + ": " + e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// flagError says what is wrong with a flag in the words of whoever wrote it.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near, ok := closest.Word(unknown.GetSpecifiedName(), known); ok {
			return fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	case errors.As(err, &invalid):
		if sample := samples[invalid.GetFlag().Value.Type()]; sample != "" {
			return fmt.Errorf("--%s: %q is not a %s", invalid.GetFlag().Name, invalid.GetValue(), sample)
		}
	}
	return err
}

// samples say by the type of a flag what it wants.
var samples = map[string]string{
	"int": "number; write one such as 50", "int64": "number; write one such as 50", "float64": "number; write one such as 50 or 0.5",
	"bool": "truth value; write true or false", "duration": "time; write one such as 30s, 5m or 2h",
}

// helpOrUnknown is what a command does that only has subcommands.
func helpOrUnknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	err := fmt.Errorf("unknown command %q", args[0])
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %q?", err, near[0])
	}
	return &usageError{c.CommandPath(), err}
}

// noArgs refuses arguments that are no flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{c.CommandPath(), fmt.Errorf("the command takes no arguments, but %q was given; remove it", args[0])}
}

// oneArg wants exactly one argument, called name.
func oneArg(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return &usageError{c.CommandPath(), fmt.Errorf("the %s is missing", name)}
		case 1:
			return nil
		}
		return &usageError{c.CommandPath(), fmt.Errorf("the command takes one %s, but %q was given as well; remove it", name, args[1])}
	}
}

// atMostOneArg wants none, or one, called name.
func atMostOneArg(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return oneArg(name)(c, args)
	}
}

// someArgs wants at least one, of which the first is called name.
func someArgs(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return oneArg(name)(c, args[:min(len(args), 1)]) }
}

func isReference(s string) bool { return strings.HasPrefix(s, "env:") || strings.HasPrefix(s, "file:") }

// dereference returns what env:NAME or file:PATH holds, and any other text as it is.
func dereference(w *env, s string) (string, error) {
	if !isReference(s) {
		return s, nil
	}
	secret, err := settings.Resolver{Environ: w.environ, ReadFile: os.ReadFile}.Secret(s)
	return secret.Reveal(), err
}
