package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newConfigCommand(w *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check or show the configuration",
		Args:  cobra.ArbitraryArgs,
		RunE:  helpOrUnknown,
	}
	c.AddCommand(newConfigCheckCommand(w), newConfigShowCommand(w))
	return c
}

func newConfigCheckCommand(w *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "check [flags]",
		Short: "Check the configuration the way serve does, and report every fault",
		Long:  "Check reads what serve reads and reports every fault with its place. It starts nothing.\n\n" + aboutSettings,
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, name, err := loadConfig(w, c.Flags())
			if err != nil {
				return err
			}
			printWarnings(w, cfg)
			if len(cfg.Sources) == 0 {
				fmt.Fprintln(w.out, "There is no configuration file and no source: serve would start a development gateway.")
				return nil
			}
			if cfg.Development {
				fmt.Fprintf(w.out, "%s: good; serve would start a development gateway\n", name)
				return nil
			}
			fmt.Fprintf(w.out, "%s: good, %d source(s)\n", name, len(cfg.Sources))
			return nil
		},
	}
	settingFlags(c.Flags())
	return c
}

func newConfigShowCommand(w *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "show [flags]",
		Short: "Show every setting in effect and where it comes from; secrets are masked",
		Long:  "Show prints the whole configuration in the form of a file, with the origin of each setting.\nSecrets and passwords are masked.\n\n" + aboutSettings,
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, _, err := loadConfig(w, c.Flags())
			if err != nil {
				return err
			}
			printWarnings(w, cfg)
			_, err = fmt.Fprint(w.out, cfg.Show())
			return err
		},
	}
	settingFlags(c.Flags())
	return c
}
