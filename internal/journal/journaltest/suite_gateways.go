package journaltest

import (
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// gateway returns one that has just started.
func (c *suite) gateway(id, view string) journal.Gateway {
	return journal.Gateway{ID: id, Host: "web-1", PID: 4711, Version: "v1", Since: c.now, Seen: c.now, View: []byte(view)}
}

func (c *suite) announce(g journal.Gateway, forget time.Time) {
	c.Helper()
	c.ok("Announce", c.store.Announce(c.Context(), g, forget))
}

func (c *suite) gateways() []journal.Gateway {
	c.Helper()
	all, err := c.store.Gateways(c.Context())
	c.ok("Gateways", err)
	return all
}

var gatewayCases = []testCase{
	{"what each last said, the longest running first", func(c *suite) {
		c.same("none", len(c.gateways()), 0)
		b := c.gateway("b", `[{"name":"app"}]`)
		c.announce(b, c.now)
		c.pass(time.Second)
		a := c.gateway("a", `[]`)
		c.announce(a, start)
		c.pass(time.Second)
		b.Seen, b.View = c.now, []byte(`[{"name":"app","waiting":7}]`)
		c.announce(b, start)
		c.same("gateways", c.gateways(), []journal.Gateway{b, a})
	}},
	{"those that are not heard of any more are forgotten, and never oneself", func(c *suite) {
		for _, id := range []string{"a", "b", "c"} {
			c.announce(c.gateway(id, `[]`), start)
			c.pass(time.Minute)
		}
		late := c.gateway("a", `[]`)
		late.Since, late.Seen = start, start // its clock stands still
		c.announce(late, start.Add(2*time.Minute))
		var ids []string
		for _, g := range c.gateways() {
			ids = append(ids, g.ID)
		}
		c.same("gateways", ids, []string{"a", "c"})
	}},
	{"one that ends takes its leave", func(c *suite) {
		c.announce(c.gateway("a", `[]`), start)
		for range 2 {
			if err := c.store.Withdraw(c.Context(), "a"); err != nil {
				c.Errorf("Withdraw: %v", err)
			}
		}
		c.same("gateways", len(c.gateways()), 0)
	}},
	{"all at once", func(c *suite) {
		old, forget := c.now, c.now.Add(time.Minute)
		for _, id := range []string{"x", "y", "z"} {
			g := c.gateway(id, `[]`)
			g.Seen = old
			c.announce(g, old)
		}
		c.pass(time.Hour)
		var all sync.WaitGroup
		for _, id := range []string{"a", "b", "c", "d"} {
			all.Go(func() {
				for range 10 {
					if err := c.store.Announce(c.Context(), c.gateway(id, `[]`), forget); err != nil {
						c.Errorf("Announce: %v", err)
					}
				}
			})
		}
		all.Wait()
		c.same("gateways", len(c.gateways()), 4)
	}},
}
