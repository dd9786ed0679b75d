package conformance

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/hookonce/hookonce/internal/ddl"
)

// Parse reads the URL of an engine: postgres://, mysql:// or mariadb://, redis:// or rediss://, or sqlite:PATH. Its error
// does not repeat the text, which may hold a password.
func Parse(text string) (Target, error) {
	if path, is := strings.CutPrefix(text, "sqlite:"); is && path != "" {
		return Target{Kind: SQLite, URL: strings.TrimPrefix(path, "//")}, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return Target{}, errors.New("this is not a URL; percent-encode special characters in the password")
	}
	kind, known := map[string]Kind{"postgres": Postgres, "postgresql": Postgres, "mysql": MySQL, "mariadb": MySQL, "redis": Redis, "rediss": Redis}[u.Scheme]
	if !known {
		return Target{}, errors.New("this names no engine; write postgres://user:password@host:5432/database, mysql://user:password@host:3306/, redis://host:6379 or sqlite:FILE")
	}
	return Target{Kind: kind, URL: text}, nil
}

// maxName is how long a name may be, so that there is room for what is appended.
const maxName = 32

// named returns an error unless the target's name can be that of a schema.
func (t Target) named() error {
	_, err := ddl.Named(ddl.Postgres, t.Name)
	if err == nil && t.Name != "" && len(t.Name) <= maxName {
		return nil
	}
	return fmt.Errorf("%q cannot name the throwaway place: use lower-case letters, digits and underscores, a letter first, at most %d", t.Name, maxName)
}
