// Command hookonce receives webhooks, makes them durable, and delivers each of them with a stable key.
//
// Run "hookonce help" for its commands. Exit status: 0 success, 1 failure, 2 wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(&env{
		args:    os.Args,
		environ: os.Environ(),
		in:      os.Stdin,
		out:     os.Stdout,
		err:     os.Stderr,
	}))
}

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

// run runs the command and returns its exit status.
func run(w *env) int {
	root := newRootCommand(w)
	root.SetArgs(w.args[1:])
	err := root.ExecuteContext(context.Background())
	var usage *usageError
	var logged *loggedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &logged):
		return exitFailure
	case errors.As(err, &usage):
		fmt.Fprintf(w.err, "%v\nRun '%s --help' to see how it is used.\n", err, usage.command)
		return exitUsage
	}
	fmt.Fprintln(w.err, err)
	return exitFailure
}

// loggedError is a failure that was said already, in the log.
type loggedError struct{ error }

// usageError says that a command line makes no sense.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.command + ": " + e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
