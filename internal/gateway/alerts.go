package gateway

import (
	"os"

	"github.com/hookonce/hookonce/internal/alerting"
	"github.com/hookonce/hookonce/internal/config"
)

// alertSettings are what is configured of alerts.
func alertSettings(cfg *config.Config, addresses []alerting.Address) alerting.Settings {
	return alerting.Settings{Off: !cfg.Alerts.Enabled, Rules: cfg.Alerts.Settings(), Name: cfg.Alerts.Name, Addresses: addresses, Keep: cfg.RetentionAudits}
}

// alertingOptions say what alerts are evaluated of. A reload counts from the next evaluation on.
func (g *Gateway) alertingOptions() alerting.Options {
	host, _ := os.Hostname() // which is for people alone
	return alerting.Options{
		Store: g.store, Snapshot: g.overview.Snapshot, Settings: func() alerting.Settings { return g.wired.Load().alerts },
		Gateway: host, Healthy: g.beat, Now: g.opt.Now, Logger: g.opt.strange, Registerer: g.opt.Registry,
	}
}
