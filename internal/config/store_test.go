package config

import "testing"

func TestSingle(t *testing.T) {
	for text, want := range map[string]string{
		"sqlite:pool_max_conns=3.db":     "pool_max_conns=3.db",
		"postgres://u:p%40@h:1/db":       "postgres://u:p%40@h:1/db",
		"postgres://u@h/db?sslmode=a%20": "postgres://u@h/db?sslmode=a%20",
		"postgres://u:p%40@h/db?pool_max_conns=3&sslmode=disable&pool_min_conns=1": "postgres://u:p%40@h/db?sslmode=disable",
		"postgres://u@/db?host=/run&pool_max_conns=3":                              "postgres://u@/db?host=%2Frun",
	} {
		s, err := ParseStore(text)
		if err != nil || s.Single() != want {
			t.Errorf("%s: %s, %v; want %s", text, s.Single(), err, want)
		}
	}
}
