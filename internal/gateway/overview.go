package gateway

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
	"github.com/hookonce/hookonce/internal/doctor"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/internal/sqlitefile"
)

// overviewOptions say where the overview looks.
func (g *Gateway) overviewOptions() overview.Options {
	reader := &fleet.Reader{Records: g.store, Self: g.fleet.self, Targets: g.targets, Now: g.opt.Now, Logger: g.opt.strange}
	return overview.Options{
		Fleet:      reader.Stands,
		Records:    g.store,
		Recent:     g.tally.Recent,
		Sources:    func() []overview.SourceState { return overviewSources(&g.wired.Load().plan) },
		Ready:      g.takes,
		Gone:       g.store.gone,
		Upkeep:     func() overview.Upkeep { return overview.Upkeep(g.journal.Worked()) },
		Free:       func() int64 { return freeBytes(g.config().Store) },
		Capacity:   func() int64 { return g.wired.Load().capacity },
		Config:     g.configFile(),
		Now:        g.opt.Now,
		Reconciled: g.library.reconciled,
		Marks:      g.store.Marks,
		Cells:      g.cells.stand,
		Missing: func(ctx context.Context) ([]journal.MissingCount, error) {
			return g.store.MissingCounts(ctx, g.opt.Now())
		},
	}
}

// configFile returns the file that the configuration was read from, as a word of a shell, unless it is that of the working folder,
// which commands find by themselves; or nothing, if there is none.
func (g *Gateway) configFile() string {
	name := g.config().File
	if name == "" || filepath.Clean(name) == "hookonce.yaml" {
		return ""
	}
	if whole, err := filepath.Abs(name); err == nil {
		name = whole
	}
	return frame.Quoted(name)
}

// takes returns why an event could not be stored now.
func (g *Gateway) takes() error {
	if g.readiness.full() {
		return fmt.Errorf("%w: %w", overview.ErrFull, errFull)
	}
	return g.readiness.check()
}

// overviewSources returns the sources whose requests are events.
func overviewSources(p *plan) (all []overview.SourceState) {
	compared := map[string]*overview.Compared{}
	for _, s := range p.reconciled {
		compared[s.Name] = &overview.Compared{Every: int64(s.Every.Seconds())}
	}
	open := map[string]bool{}
	for i := range p.cfg.Sources {
		open[p.cfg.Sources[i].Name] = p.cfg.Sources[i].OnStoreDown == config.Open
	}
	for _, s := range apiSources(p.cfg) {
		all = append(all, overview.SourceState{Name: s.Name, Provider: s.Provider, Path: s.Path, Destinations: append([]string{}, s.Destinations...),
			ExpectEvery: int64(p.expected[s.Name].Seconds()), Secrets: overviewSecrets(p.cfg, s.Name),
			Compared: compared[s.Name], Open: open[s.Name]})
	}
	return all
}

// overviewSecrets returns when the secrets of a source begin and end, and nothing else of them.
func overviewSecrets(cfg *config.Config, source string) (all []overview.Secret) {
	known := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = t.UTC()
		return &t
	}
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; s.Name == source {
			for j := range s.Secrets {
				all = append(all, overview.Secret{From: known(s.Secrets[j].From), Until: known(s.Secrets[j].Until)})
			}
		}
	}
	return all
}

// freeBytes returns what is left on the disk of a store that is a file, in whose folder its log grows, too. 0 says that it is not
// known, so of a disk that is full it is 1.
func freeBytes(s config.Store) int64 { return freeBy(s, doctor.Space) }

func freeBy(s config.Store, space func(folder string) (uint64, error)) int64 {
	if s.Driver != config.SQLite {
		return 0
	}
	free, err := space(filepath.Dir(sqlitefile.Name(s.DSN)))
	if err != nil {
		return 0
	}
	return int64(min(max(free, 1), math.MaxInt64))
}
