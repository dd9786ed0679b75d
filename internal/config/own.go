package config

import (
	"cmp"
	"maps"
)

// The destination of a source with a URL of its own. It has the name of the source, and is written as the URL alone or
// as a group of the settings of a destination.

// ownEntry reads one entry of a group to.
func (l *loader) ownEntry(s *section, e entry) {
	switch e.key {
	case "url":
		s.settings[toKey] = l.texts(toKey+".url", endpoint{}, e)
	case "name":
		l.fault(e.at, "to.name: this destination has the name of its source; remove it, or make it one of destinations: with a route to it")
	default:
		collect(l, s.own.settings, destinationSettings, "", e)
	}
}

// own builds the destination of a source from a group to.
func (l *loader) own(s *Source, from *section) {
	if from == nil {
		return
	}
	d := l.newDestination(*from)
	if _, written := d.origin["sign_as"]; !written {
		d.SignAs = SignProvider
	}
	s.own = &d
	for _, key := range appKeys {
		if _, twice := d.origin[key]; twice && s.has(key) {
			l.fault(s.where(key), "%s: it is written below to: as well, at %s; keep one of them", key, d.where(key))
		}
	}
	if s.Mode == Idempotent {
		l.fault(from.at, "to: source %q has mode: idempotency, and forwards requests as they are; write the URL alone", s.Name)
	} else if len(s.origin[toKey].texts) == 0 {
		l.fault(from.at, "to: a destination lacks its url; write url: and a value such as https://shop.internal/hooks")
	}
}

// appKeys are what a source can say about its own destination beside the URL.
var appKeys = []string{"sign_as", "app_secret", "app_url"}

// ownDestination returns the destination of a source with a URL of its own.
func (c *Config) ownDestination(s *Source) Destination {
	if s.own != nil {
		return s.destination()
	}
	d := c.NewDestination(s.Name, s.To)
	d.SignAs, d.AppSecret, d.AppURL = cmp.Or(s.SignAs, SignProvider), s.AppSecret, s.AppURL
	d.at, d.origin = s.where(toKey), s.said()
	return d
}

// destination returns the one that a group to describes.
func (s *Source) destination() Destination {
	d := *s.own
	d.Name, d.URL = s.Name, s.To
	d.origin = maps.Clone(d.origin)
	maps.Copy(d.origin, s.said())
	if s.SignAs != "" {
		d.SignAs = s.SignAs
	}
	if s.has("app_secret") {
		d.AppSecret = s.AppSecret
	}
	if s.AppURL != "" {
		d.AppURL = s.AppURL
	}
	return d
}

// said is where the source says something about its own destination.
func (s *Source) said() layer {
	says := layer{}
	for _, key := range appKeys {
		if g, ok := s.origin[key]; ok {
			says[key] = g
		}
	}
	if g, ok := s.origin[toKey]; ok {
		says["url"] = g
	}
	return says
}

// ownChanges returns what is different in the group to of another.
func (s *Source) ownChanges(next *Source) (all []Change) {
	if s.own == nil || next.own == nil {
		if s.own != next.own {
			all = append(all, Change{Setting: toKey, Text: toKey + " changed"})
		}
		return all
	}
	for _, c := range s.own.changes(next.own) {
		c.Setting, c.Text = toKey+"."+c.Setting, toKey+"."+c.Text
		all = append(all, c)
	}
	return all
}
