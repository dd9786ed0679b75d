package spec

import (
	"net/http"

	"github.com/hookonce/hookonce"
)

// maxUnverified bounds, in bytes, the bodies that are looked into for [Provider.UnverifiedKey]: anybody can send them.
const maxUnverified = 64 << 10

// UnverifiedKey returns the key that a request would have, or its first event, if it were authentic, which nobody says that
// it is: for people who look for an event that was refused. Nothing may be decided by it. It is empty if there is none, or
// if it is in a body of more than 64 KiB, and has the form of [hookonce.NormalKey]. It never panics, whatever the bytes,
// and fetches nothing.
func (p *Provider) UnverifiedKey(req *hookonce.Request) string {
	own := *req
	own.Lazy = true
	if len(own.Body) > maxUnverified {
		if own.Body = nil; p.extract.onRepeat == KeepLatest { // whose keys have the content in them
			return ""
		}
	}
	if own.Method == http.MethodGet {
		own = *p.posted(&own)
	}
	for i := range p.verifiers { // what is signed, and with it the key, depends on the way of signing
		r, by := p.reading(&own), &p.verifiers[i]
		if by.id != nil {
			r.id = r.get(by.id)
		}
		var d hookonce.Verified
		p.extract.events(r, by, &d)
		for ev := range d.All() {
			if ev.Key != "" {
				return ev.Key
			}
			break
		}
	}
	return ""
}
