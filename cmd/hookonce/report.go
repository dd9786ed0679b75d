package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/observe"
)

func newReportCommand(w *world) *cobra.Command {
	var since, source string
	var limit int
	var asJSON bool
	c := &cobra.Command{
		Use:   "report [flags]",
		Short: "Say what the applications behind mode: observe do twice or lose today",
		Long: `Report reads what a gateway recorded of its sources with mode: observe, and says in a page for each what
its application did twice, what it never answered 2xx, which forgeries it took for events, and which
events prove it. It reads the store itself, whether a gateway runs or not, and changes nothing.`,
		Example: `  hookonce report --since 24h
  hookonce report --since 7d --source billing --limit 20
  hookonce report --since 2026-11-21 --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			now := time.Now()
			from, err := moment("since", since, now)
			switch {
			case err == nil && (from.IsZero() || from.After(now)):
				err = errors.New("--since: say since when, such as 24h, 7d or 2026-11-21")
			case err == nil && (limit < 0 || limit > maxListed):
				err = fmt.Errorf("--limit: write a number from 0 to %d", maxListed)
			}
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			cfg, err := loadStoreConfig(w, c.Flags())
			if err != nil {
				return err
			}
			reports, err := reportOn(c.Context(), cfg, source, from, limit)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(w, reports)
			}
			if len(reports) == 0 && source != "" {
				printUnknown(w, cfg, source, from)
				return nil
			}
			return printReports(w, cfg, reports, from)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&since, "since", "24h", "what was received at this `time` or later: 24h, 7d (ago), 2026-11-21, or 2026-11-21T12:00:00Z")
	f.StringVar(&source, "source", "", "only the source with this `name`")
	f.IntVar(&limit, "limit", 5, "list at most this `number` of events of each kind; all are counted")
	f.BoolVar(&asJSON, "json", false, "write the report as JSON")
	configFlag(f)
	config.StoreFlags(f)
	return c
}

// reportOn returns a report for each source that is observed, or that anything is on record of.
func reportOn(ctx context.Context, cfg *config.Config, only string, since time.Time, limit int) ([]*observe.Report, error) {
	reports := []*observe.Report{}
	if _, err := os.Stat(cfg.Store.DSN); cfg.Store.Driver == config.SQLite && errors.Is(err, fs.ErrNotExist) {
		return reports, fmt.Errorf("%s is not there: no gateway has run with this store yet; name another with --store or --config", cfg.Store)
	}
	store, err := gateway.OpenObservations(cfg)
	if err != nil {
		return nil, gateway.Explain(cfg.Store, err)
	}
	defer store.Close()
	if err := store.Check(ctx); err != nil {
		return nil, gateway.Explain(cfg.Store, err)
	}
	names, err := store.Sources(ctx)
	if err != nil {
		return nil, gateway.Explain(cfg.Store, err)
	}
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; s.Mode == config.Observe && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	for _, name := range names {
		if only != "" && name != only {
			continue
		}
		r, err := observe.NewReport(ctx, store, name, since, limit)
		if err != nil {
			return nil, gateway.Explain(cfg.Store, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}
