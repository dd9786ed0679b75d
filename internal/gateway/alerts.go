package gateway

import (
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/alerting"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/overview"
)

// alertSettings are what is configured of alerts.
func alertSettings(cfg *config.Config, addresses []alerting.Address) alerting.Settings {
	return alerting.Settings{Off: !cfg.Alerts.Enabled, Rules: cfg.Alerts.Settings(), Name: cfg.Alerts.Name, Addresses: addresses, Keep: cfg.RetentionAudits}
}

// alertingOptions say what alerts are evaluated of. A reload counts from the next evaluation on.
func (g *Gateway) alertingOptions() alerting.Options {
	o := g.earlyAlerting(g.overview)
	o.Store, o.Healthy, o.Registerer = g.store, g.beat, g.opt.Registry
	return o
}

// earlyAlerting says what alerts are evaluated of before the store is there: that it is not is told by whoever waits for it. The
// metrics are those of the evaluation that comes after it.
func (g *Gateway) earlyAlerting(early *overview.Overview) alerting.Options {
	host, _ := os.Hostname() // which is for people alone
	return alerting.Options{
		Local: &g.unstored, Snapshot: early.Snapshot, Settings: func() alerting.Settings { return g.wired.Load().alerts },
		Gateway: host, Now: g.opt.Now, Logger: g.opt.strange, Registerer: prometheus.NewRegistry(),
	}
}
