package gateway

import (
	"fmt"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
)

// backoffFactor is how much longer each wait between attempts is than the one before.
const backoffFactor = 3

// wire turns the configured sources into endpoints and destinations. The destination of a source has
// the source's name.
func wire(cfg *config.Config) ([]ingest.Source, map[string]deliver.Destination, error) {
	var endpoints []ingest.Source
	destinations := map[string]deliver.Destination{}
	schedule := deliver.Exponential(cfg.Delivery.Backoff, cfg.Delivery.BackoffMax, backoffFactor, cfg.Delivery.Attempts)
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		p, err := s.NewProvider()
		if err != nil {
			return nil, nil, fmt.Errorf("source %q: %w", s.Name, err)
		}
		endpoint := ingest.Source{Name: s.Name, Provider: p, Secrets: len(s.Secrets), MaxBody: s.MaxBody}
		if s.MaxBody == 0 {
			endpoint.MaxBody = p.Limits().MaxBody
		}
		if s.To != "" {
			endpoint.Destinations = []string{s.Name}
			destinations[s.Name] = deliver.Destination{Name: s.Name, URL: s.To, Timeout: cfg.Delivery.Timeout, Schedule: schedule}
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints, destinations, nil
}

func (g *Gateway) ingestHandler(endpoints []ingest.Source) *ingest.Handler {
	return ingest.New(ingest.Options{
		Sources:    endpoints,
		Journal:    g.journal,
		Now:        g.opt.Now,
		Logger:     g.opt.Logger,
		Registerer: g.opt.Registry,
	})
}

func (g *Gateway) deliverOptions(destinations map[string]deliver.Destination) deliver.Options {
	return deliver.Options{
		Journal:      g.journal,
		Destinations: destinations,
		Concurrency:  g.cfg.Delivery.Concurrency,
		Now:          g.opt.Now,
		Logger:       g.opt.Logger,
		Registerer:   g.opt.Registry,
	}
}

func (g *Gateway) journalOptions(ids *journal.IDs, destinations map[string]deliver.Destination) journal.Options {
	held := map[string]journal.Destination{} // none is not all
	for name := range destinations {
		held[name] = journal.Destination{}
	}
	return journal.Options{
		MaxBatch:     g.cfg.Queue.Batch,
		QueueEntries: g.cfg.Queue.Events,
		QueueBytes:   g.cfg.Queue.Bytes,
		Destinations: held,
		Lease:        g.cfg.Delivery.Lease,
		Retention:    &journal.Retention{IDs: g.cfg.Retention.IDs, Bodies: g.cfg.Retention.Bodies},
		IDs:          ids,
		Now:          g.opt.Now,
		Logger:       g.opt.Logger,
		Registerer:   g.opt.Registry,
	}
}
