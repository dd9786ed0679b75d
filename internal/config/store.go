package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/hookonce/hookonce/internal/settings"
)

// Store says where the journal is kept.
type Store struct {
	// Driver is "sqlite" or "postgres".
	Driver string
	// DSN is the file's path for SQLite, and the connection URL for Postgres. It may hold a
	// password: print String instead.
	DSN string
}

// The drivers.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// ParseStore reads sqlite:PATH or postgres://user:password@host:port/database. Its error never
// repeats the text, which may hold a password.
func ParseStore(s string) (Store, error) {
	if path, ok := strings.CutPrefix(s, "sqlite:"); ok {
		return parseSQLite(path)
	}
	if strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://") {
		return parsePostgres(s)
	}
	return Store{}, errors.New("this names no store; write sqlite:hookonce.db or postgres://user:password@host:5432/database")
}

func parseSQLite(path string) (Store, error) {
	switch {
	case path == "":
		return Store{}, errors.New("the path is missing; write the name of a file, such as sqlite:hookonce.db")
	case strings.Contains(path, ":memory:"):
		return Store{}, errors.New("an in-memory database forgets what it acknowledged; write the name of a file, such as sqlite:hookonce.db")
	case strings.ContainsAny(path, "?\x00"):
		return Store{}, errors.New("the path holds a character that file names of SQLite cannot have here; write a plain path, such as sqlite:/var/lib/hookonce/hookonce.db")
	}
	return Store{Driver: SQLite, DSN: strings.TrimPrefix(path, "//")}, nil
}

func parsePostgres(s string) (Store, error) {
	u, q, err := parseURL(s)
	if err != nil {
		return Store{}, errors.New("this is not a connection URL; write postgres://user:password@host:5432/database, with special characters in the password percent-encoded")
	}
	if u.Host == "" && q.Get("host") == "" {
		return Store{}, errors.New("the URL names no host; write postgres://user:password@host:5432/database, or add ?host=/var/run/postgresql for a socket")
	}
	return Store{Driver: Postgres, DSN: s}, nil
}

// String returns the store as a user writes it, with the password masked.
func (s Store) String() string {
	if s.Driver == SQLite {
		return "sqlite:" + s.DSN
	}
	u, q, err := parseURL(s.DSN)
	if err != nil {
		return s.Driver + "://" + settings.Mask
	}
	for _, name := range []string{"password", "sslpassword"} {
		if q.Has(name) {
			q.Set(name, settings.Mask)
			u.RawQuery = q.Encode()
		}
	}
	return settings.MaskPassword(u)
}

// Format writes what [Store.String] returns.
func (s Store) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// Single returns the DSN for a connection that is in no pool of pgx: without the settings of pools
// (pool_max_conns and others), which the server would refuse. It may hold a password.
func (s Store) Single() string {
	if s.Driver != Postgres {
		return s.DSN
	}
	u, q, err := parseURL(s.DSN)
	if err != nil {
		return s.DSN
	}
	for name := range q {
		if strings.HasPrefix(name, "pool_") {
			q.Del(name)
			u.RawQuery = q.Encode()
		}
	}
	return u.String()
}

// parseURL is [url.Parse] that looks into the query as well: a part that is not well-formed would be
// left out silently, and be shown.
func parseURL(s string) (*url.URL, url.Values, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, nil, err
	}
	q, err := url.ParseQuery(u.RawQuery)
	return u, q, err
}

// storeValue is the setting "store".
type storeValue struct{ to *Store }

func (v storeValue) Set(s string) error {
	parsed, err := ParseStore(s)
	if err != nil {
		return err
	}
	*v.to = parsed
	return nil
}

func (v storeValue) Show() string { return v.to.String() }

func (v storeValue) Exact() string { return v.to.DSN }

// standbyValue is the setting "store_read", which may be empty.
type standbyValue struct{ storeValue }

func (v standbyValue) Set(s string) error {
	if s == "" {
		*v.to = Store{}
		return nil
	}
	if err := v.storeValue.Set(s); err != nil {
		return err
	}
	if v.to.Driver != Postgres {
		return errors.New("a file of SQLite has no standby; leave store_read out, or write postgres://... for both")
	}
	if u, q, err := parseURL(s); err == nil && strings.Contains(u.Host+q.Get("host"), ",") {
		return errors.New("each of several servers may be behind by another time, and what is shown could not say by how much; name one standby")
	}
	return nil
}

func (v standbyValue) Show() string {
	if v.to.Driver == "" {
		return ""
	}
	return v.storeValue.Show()
}
