package config

import "github.com/hookonce/hookonce/internal/settings"

// AdminToken lets its bearer use the admin listener.
type AdminToken struct {
	// Name is that of the bearer; it stands in the audit log.
	Name  string
	Token settings.Secret
	// Role is [RoleRead] or [RoleOperator].
	Role string
	// Payloads is set if the bearer may look at bodies and headers of events, as far as [Config.AdminPayloads] lets anybody.
	Payloads bool

	origin settings.Layer
	at     settings.Place
}

// What the bearer of a token may do.
const (
	RoleRead     = "read"     // look at everything
	RoleOperator = "operator" // replay, pause and resume as well
)

// How bodies and headers of events are shown to people.
const (
	PayloadsOff    = "off"    // to nobody
	PayloadsMasked = "masked" // with what they say replaced
	PayloadsFull   = "full"   // as they are stored
)

// tokenTable declares every setting of an admin token.
var tokenTable = settings.Table[AdminToken]{
	{Key: "name", Bind: func(t *AdminToken) settings.Value { return settings.Text(&t.Name, checkName) }},
	{Key: "token", Bind: func(t *AdminToken) settings.Value { return settings.OutsideReference(&t.Token) }},
	{Key: "role", Default: RoleRead, Bind: func(t *AdminToken) settings.Value { return settings.Choice(&t.Role, RoleRead, RoleOperator) }},
	{Key: "payloads", Default: "false", Bind: func(t *AdminToken) settings.Value { return settings.Bool(&t.Payloads) }},
}

// where returns the place that a setting of the token came from, or that of the token.
func (t *AdminToken) where(key string) settings.Place {
	return t.origin.Where(t.at, key)
}

func (t *AdminToken) changes(next *AdminToken) []settings.Change {
	return settings.Differ(t, next, tokenTable, t.origin, next.origin)
}
