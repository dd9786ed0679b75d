package idempotency

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce"
)

// scopeOption says whose request one is.
func scopeOption(parts []string) hookonce.KeyOption {
	if len(parts) == 0 {
		return hookonce.WithoutScope()
	}
	return hookonce.WithScope(func(r *http.Request) (string, error) { return scopeOf(r.Header, parts) })
}

// scopeOf returns the values of the parts, so joined that no two lists of values look alike. A field that
// is there twice is as unknown as one that is not: the service might take the other one.
func scopeOf(h http.Header, parts []string) (string, error) {
	values := make([]string, 0, len(parts)+1)
	for _, part := range parts {
		name := strings.TrimPrefix(part, "header:")
		lines := h.Values(name)
		if len(lines) != 1 || lines[0] == "" {
			return "", fmt.Errorf("the header %s is there %d times", name, len(lines))
		}
		values = append(values, lines[0])
	}
	return hookonce.JoinKey(append(values, "end")...), nil
}
