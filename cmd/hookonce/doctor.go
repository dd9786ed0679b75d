package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/doctor"
	"github.com/hookonce/hookonce/internal/settings"
)

func newDoctorCommand(w *env) *cobra.Command {
	var redis, cases string
	var asJSON, conformance bool
	c := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check the configuration, the store and its server, and say what to change",
		Long: `Doctor looks for what would lose events, repeat them, or stop them: in the configuration, in the store
and its tables, in the settings of the database server, on the disk, and in the work that was left
behind. It changes nothing.

It reads the configuration as serve does. A program that uses the library names its database with
--store, and the schema of the tables with --schema if it is not the usual one.

With --conformance it is the engine that is looked at, and no tables of yours: all suites that hold
the stores to their promises are run against the server that --store or --redis names, in a schema,
database, folder or prefix of their own there, which is made and removed, also after Ctrl-C. Its name
is hookonce_conformance_ and a random part; --schema hookonce_conformance_NAME puts a name between
them, and any other is refused, because it might be that of tables which are in use. That takes a minute or two, some dozens of connections, and the right to create a schema (PostgreSQL) or
a database (MySQL, MariaDB). No configuration is read. --json writes a report that can be sent to
others: it names no host and no password.

Exit status: 0 no fault was found (warnings may be), 1 there is a fault, 2 wrong usage.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if conformance {
				return conform(w, c, redis, cases, asJSON)
			}
			if cases != "" {
				return &usageError{c.CommandPath(), errors.New("--cases goes with --conformance")}
			}
			found := examine(w, c, redis)
			if asJSON {
				if err := printJSON(w, found); err != nil {
					return err
				}
			} else {
				printFindings(w, found)
			}
			if !doctor.Healthy(found) {
				return errors.New("the doctor found faults; mend those that are listed above")
			}
			return nil
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&redis, "redis", "", "also look at the Redis server at this `URL`")
	f.BoolVar(&asJSON, "json", false, "write the findings as JSON")
	f.BoolVar(&conformance, "conformance", false, "run the conformance suites against the engine, in a place of their own")
	f.StringVar(&cases, "cases", "", "with --conformance, only cases whose names match the `pattern`, as go test -run has it")
	configFlag(f)
	config.StoreFlags(f)
	c.AddCommand(newSuitesCommand(w))
	return c
}

// examine looks at everything. A configuration that serve refuses is looked at as far as it goes: its
// store often can be, when only a secret is missing.
func examine(w *env, c *cobra.Command, redis string) (found []doctor.Finding) {
	cfg, _, err := loadConfig(w, c.Flags())
	if err != nil {
		found = faultsOf(err)
		if cfg, err = loadStoreConfig(w, c.Flags()); err != nil {
			return found
		}
	}
	return append(found, doctor.Examine(c.Context(), doctor.Patient{Config: cfg, Redis: redis})...)
}

// faultsOf returns the faults that keep a configuration from being used.
func faultsOf(err error) (found []doctor.Finding) {
	fault := func(text string) {
		found = append(found, doctor.Finding{Check: "configuration", Level: doctor.Fault, Text: text, Advice: "correct it: serve does not start like this"})
	}
	var faults settings.Faults
	if !errors.As(err, &faults) {
		fault(err.Error())
	}
	for _, p := range faults {
		fault(p.Error())
	}
	return found
}

// printFindings writes one line for each finding, and what to do below those that are not well.
func printFindings(w *env, found []doctor.Finding) {
	for _, f := range found {
		fmt.Fprintf(w.out, "%-8s %-14s %s\n", f.Level, f.Check, clean(f.Text))
		if f.Advice != "" {
			fmt.Fprintf(w.out, "%-8s %-14s %s\n", "", "", "→ "+clean(f.Advice))
		}
	}
}
