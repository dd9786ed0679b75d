// Command hookonce receives webhooks, makes them durable, and delivers each of them with a stable key.
//
// Run "hookonce help" for its commands. Exit status: 0 success, 1 failure, 2 wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/notify"
)

func main() {
	notify.RestrainDefaults()
	os.Exit(execute(&env{
		args:    os.Args,
		environ: os.Environ(),
		in:      os.Stdin,
		out:     os.Stdout,
		err:     os.Stderr,
	}))
}

// execute runs the command and returns its exit status.
func execute(w *env) int {
	root := newRootCommand(w)
	root.SetArgs(w.args[1:])
	err := root.ExecuteContext(context.Background())
	var usage *usageError
	var logged *loggedError
	var unasked *unaskedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &logged):
		return exitFailure
	case errors.As(err, &usage):
		fmt.Fprintf(w.err, "%v\nRun '%s --help' to see how it is used.\n", err, usage.command)
		return exitUsage
	case errors.As(err, &unasked):
		fmt.Fprintln(w.err, err)
		return exitUsage
	}
	fmt.Fprintln(w.err, err)
	return exitFailure
}

func newRootCommand(w *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "hookonce",
		Short: "Receive webhooks once",
		Long: `hookonce stands between webhook providers, which deliver at least once, and your program. It
verifies every request, makes the event durable before it acknowledges, recognises every later
copy, and delivers the event with a stable Idempotency-Key until your program has answered 2xx.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		RunE:              helpOrUnknown,
		Version:           version(),
	}
	root.SetVersionTemplate(versions())
	root.SetIn(w.in)
	root.SetOut(w.out)
	root.SetErr(w.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{c.CommandPath(), flagError(c, err)}
	})
	root.AddCommand(
		newServeCommand(w),
		newConfigCommand(w),
		newMigrateCommand(w),
		newEventsCommand(w),
		newTailCommand(w),
		newFailuresCommand(w),
		newRefusalsCommand(w),
		newStatusCommand(w),
		newDestinationsCommand(w),
		newAlertsCommand(w),
		newHistoryCommand(w),
		newReloadCommand(w),
		newProvidersCommand(w),
		newVerifyCommand(w),
		newSendCommand(w),
		newRelayCommand(w),
		newPurgeCommand(w),
		newHammerCommand(w),
		newReconcileCommand(w),
		newCellsCommand(w),
		newDashboardCommand(w),
		newReportCommand(w),
		newDoctorCommand(w),
		newDemoCommand(w),
		newVersionCommand(w),
	)
	return root
}
