package config

import (
	"net"

	"github.com/hookonce/hookonce/provider/spec"
)

// checkPressure looks at what a source does to keep senders at bay.
func (l *loader) checkPressure(s *Source) {
	if s.has("burst") && !s.has("rate") {
		l.fault(s.where("burst"), "burst: it needs a rate to go beyond; write rate: as well, or remove it")
	}
	host, _, err := net.SplitHostPort(l.cfg.Listen)
	if len(s.Allow) > 0 && len(l.cfg.TrustedProxies) == 0 && err == nil && isLoopback(host) {
		l.warn(s.where("allow"), "allow: listen is a loopback address, so that every request comes from a proxy on this machine; write its address under trusted_proxies")
	}
}

// checkTwins finds types that are to be dropped as twins where nothing recognises twins.
func (l *loader) checkTwins(s *Source, known spec.Spec) {
	if len(s.Twins.Drop) > 0 && len(known.Dedup.Logical) == 0 {
		l.warn(s.where("twins.drop"), "twins.drop: %s is not known to send two events for one change, so that nothing is dropped", known.Title)
	}
}
