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

// A standby is one server of Postgres, and none at all if it is not named.
func TestStandbyValue(t *testing.T) {
	for text, fine := range map[string]bool{
		"": true, "postgres://u@h/db": true, "sqlite:copy.db": false, "postgres://u@h1,h2/db": false, "postgres://u@/db?host=h1,h2": false, "h": false,
	} {
		var s Store
		v := standbyValue{storeValue{&s}}
		if err := v.Set(text); (err == nil) != fine {
			t.Errorf("%q: %v", text, err)
		}
		if fine && v.Show() != text {
			t.Errorf("%q is shown as %q", text, v.Show())
		}
	}
}
