package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
)

func newMigrateCommand(w *env) *cobra.Command {
	var print bool
	var dialect string
	c := &cobra.Command{
		Use:   "migrate [flags]",
		Short: "Create the tables or bring them up to date",
		Long: `Migrate brings the database to the version that this program needs. It is safe to run while other
processes do the same, and while older gateways run. A database that is newer is left alone.

With --print nothing is touched: the SQL for an empty database goes to standard output, for teams
that apply migrations with a tool of their own. It is to be run in one transaction, which it leaves
to the tool to begin and end (psql -1 -f FILE). With --dialect mysql it is the SQL for a program that keeps
claims in MySQL or MariaDB, which the gateway itself does not use.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if dialect != "" && !print {
				return &usageError{c.CommandPath(), errors.New("--dialect goes with --print; the gateway's store tells its own")}
			}
			cfg, err := loadStoreConfig(w, c.Flags())
			if err != nil {
				return err
			}
			if print {
				sql, err := gateway.Schema(cfg, dialect)
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(w.out, strings.TrimRight(sql, "\n")+"\n")
				return err
			}
			from, to, err := gateway.Migrate(c.Context(), cfg)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(w.out, migrated(cfg, from, to))
			return err
		},
	}
	c.Flags().BoolVar(&print, "print", false, "print the SQL and touch nothing")
	c.Flags().StringVar(&dialect, "dialect", "", "with --print, for another `kind` of database than the store's: postgres, yugabyte, sqlite or mysql")
	configFlag(c.Flags())
	config.StoreFlags(c.Flags())
	return c
}

func migrated(cfg *config.Config, from, to int64) string {
	if from == to {
		return fmt.Sprintf("%s: schema %d is up to date", cfg.Store, to)
	}
	return fmt.Sprintf("%s: migrated from schema %d to %d", cfg.Store, from, to)
}
