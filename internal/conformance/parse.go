package conformance

import (
	"crypto/rand"
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

// Prefix is what the names of all places begin with, so that none can be that of tables which somebody uses.
const Prefix = "hookonce_conformance"

// maxName is how long a name may be, so that there is room for what is appended.
const maxName = 28

// random is a part of a name that nobody else comes upon by chance: thirty bits.
func random() string { return strings.ToLower(rand.Text()[:6]) }

// throwaway returns the target with a name that nobody has: what was asked for, and a random part. It returns an error if what
// was asked for could be the name of something that is in use, or cannot be one.
func (t Target) throwaway() (Target, error) {
	if t.Name == "" {
		t.Name = Prefix
	} else if _, err := ddl.Named(ddl.Postgres, t.Name); err != nil || len(t.Name) > maxName || !strings.HasPrefix(t.Name, Prefix+"_") {
		return t, fmt.Errorf("%q cannot name the throwaway place, which is removed with all that is in it: leave --schema out, or let it be %s_ and up to %d lower-case letters, digits and underscores",
			t.Name, Prefix, maxName-len(Prefix+"_"))
	}
	t.Name += "_" + random()
	return t, nil
}
