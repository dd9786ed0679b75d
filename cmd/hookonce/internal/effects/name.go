package effects

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// names are the names of a question, quoted.
type names struct{ table, event, source, time string }

func (q Question) names() (n names, err error) {
	var faults []error
	set := func(to *string, what, name string, parts int) {
		if name == "" {
			return
		}
		quoted, err := quote(name, parts)
		if err != nil {
			faults = append(faults, fmt.Errorf("the %s %q: %w", what, name, err))
		}
		*to = quoted
	}
	set(&n.table, "table", q.Table, 2)
	set(&n.event, "event column", q.Event, 1)
	set(&n.source, "source column", q.Source, 1)
	set(&n.time, "time column", q.Time, 1)
	switch {
	case q.Table == "" || q.Event == "":
		faults = append(faults, errors.New("the table and its event column must be named, with --table and --event-column"))
	case q.Lost != "" && q.Lost != Claims && q.Lost != Events:
		faults = append(faults, fmt.Errorf("lost effects are looked for in %s or %s, not in %q", Claims, Events, q.Lost))
	case q.Lost != "" && q.Source == "" && q.Only == "":
		faults = append(faults, errors.New("to find lost effects it must be known which source the table belongs to: name it with --source, or with --source-column a column that has it"))
	case q.Lost == "" && q.Only != "" && q.Source == "":
		faults = append(faults, errors.New("to look at one source alone, name the column that has it with --source-column"))
	}
	return n, errors.Join(faults...)
}

// A name without quotes is one that SQL would read as one.
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]*$`)

// quote returns a name of at most so many parts in a form that nothing can break out of. A part without
// quotes is in lower case, as in Postgres; SQLite does not care.
func quote(name string, most int) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", errors.New("a name has no NUL")
	}
	var quoted []string
	for rest := name; ; {
		part, after, err := cut(rest)
		if err != nil {
			return "", err
		}
		quoted = append(quoted, `"`+strings.ReplaceAll(part, `"`, `""`)+`"`)
		if after == "" {
			break
		}
		if after[0] != '.' {
			return "", errors.New("after a closing quote a point or nothing must follow")
		}
		rest = after[1:]
	}
	if len(quoted) > most {
		return "", fmt.Errorf("it has %d parts, and can have %d; a name with a point in it needs double quotes", len(quoted), most)
	}
	return strings.Join(quoted, "."), nil
}

// cut takes the first part off a name.
func cut(name string) (part, after string, err error) {
	if !strings.HasPrefix(name, `"`) {
		part, _, _ = strings.Cut(name, ".")
		if !plain.MatchString(part) {
			return "", "", errors.New("this is no plain name; if it is right, put it in double quotes")
		}
		return strings.ToLower(part), name[len(part):], nil
	}
	for i := 1; i < len(name); i++ {
		switch {
		case name[i] != '"':
		case strings.HasPrefix(name[i:], `""`):
			i++
		case i == 1:
			return "", "", errors.New("a name cannot be empty")
		default:
			return strings.ReplaceAll(name[1:i], `""`, `"`), name[i+1:], nil
		}
	}
	return "", "", errors.New("the closing quote is missing")
}
