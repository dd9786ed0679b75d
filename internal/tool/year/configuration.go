package year

import (
	"fmt"
	"strings"
	"time"
)

// The secrets of the simulation. All of them are made up here.
const (
	shopSecret    = "whsec_c2ltdWxhdGlvbi1zaG9wLXNlY3JldC0wMDAwMDE="
	shopSecretOld = "whsec_c2ltdWxhdGlvbi1zaG9wLXNlY3JldC0wMDAwMDI="
	operatorToken = "simulated-operator-token-0123456789"
)

func secretOf(source string) string       { return "whsec_simulated-" + source }
func forgedSecretOf(source string) string { return "whsec_guessed-" + source }

var environment = []string{"OPERATOR=" + operatorToken, "SHOP=" + shopSecret, "SHOP_OLD=" + shopSecretOld,
	"BILLING=" + secretOf("billing"), "ORDERS=" + secretOf("orders"), "CALLS=" + secretOf(synchronous), "CARTS=" + secretOf(open), "PAYMENTS=" + secretOf("payments"), "STOREFRONT=" + secretOf("storefront"), "NEXT=whsec_simulated-next"}

func ingestAddress(number int) string { return fmt.Sprintf("10.0.0.%d:8080", number+1) }
func adminAddress(number int) string  { return fmt.Sprintf("127.0.0.1:%d", 9001+number) }

// The variants of the configuration, as bits.
const (
	variantRotated = 1 << iota // secrets are being rotated
	variantSlow                // fewer deliveries at once, and a rate
	variantLonger              // other times
	variantFewer               // one destination less
	variants       = 1 << iota
)

// shortestTimeout is that of an attempt.
const shortestTimeout = 8 * time.Second

// queueEvents bounds what waits in a gateway. A request of more than a 32nd of it is stored in more than one commit.
const queueEvents = 96

// attempts is after how many a delivery is given up.
const attempts = 12

// configuration is the file of a gateway, with what is said of cells if there are some.
func configuration(number, variant int, cells string) []byte {
	var b strings.Builder
	store := "sqlite:hookonce.db"
	if cells != "" {
		store = "postgres://hookonce@database.internal/hookonce"
		variant &^= variantFewer // or sources would be placed by other things, which needs another map
	}
	fmt.Fprintf(&b, "listen: %s\nadmin: %s\nstore: %s\n%s", ingestAddress(number), adminAddress(number), store, cells)
	b.WriteString("admin_tokens:\n  - {name: operator, token: 'env:OPERATOR', role: operator}\n")
	b.WriteString("retention: {ids: 90d, bodies: 7d}\n")
	fmt.Fprintf(&b, "queue: {events: %d, batch: %d}\n", queueEvents, queueEvents/2)
	concurrency, timeout, rotated := 8, shortestTimeout.String(), ""
	if variant&variantSlow != 0 {
		concurrency = 1
	}
	if variant&variantLonger != 0 {
		timeout = "12s"
	}
	if variant&variantRotated != 0 {
		rotated = ", 'env:NEXT'"
	}
	fmt.Fprintf(&b, "delivery: {lease: 5s, timeout: %s, backoff: 2s, backoff_max: 30s, attempts: %d, concurrency: %d}\n", timeout, attempts, concurrency)
	secret := "'env:SHOP'"
	if variant&variantRotated != 0 {
		secret = "'env:SHOP', 'env:SHOP_OLD'"
	}
	fmt.Fprintf(&b, "destinations:\n  - {name: %s, url: 'http://%s:80/hooks', secrets: [%s]}\n", claiming, claiming, secret)
	if variant&variantFewer == 0 {
		fmt.Fprintf(&b, "  - {name: %s, url: 'http://%s:80/hooks', order: by_resource}\n", plain, plain)
	}
	b.WriteString("sources:\n")
	for _, s := range sources() {
		to := destinationsOf(s)
		if variant&variantFewer != 0 {
			to = to[:1]
		}
		fmt.Fprintf(&b, "  - name: %s\n    provider: %s\n    secrets: ['env:%s'%s]\n    routes:\n      - to: [%s]\n", s, kinds[s], strings.ToUpper(s), rotated,
			strings.Join(to, ", "))
		switch s {
		case synchronous:
			b.WriteString("    mode: sync\n    deadline: 7s\n")
		case open:
			b.WriteString("    on_store_down: open\n    open_types: ['cart.*']\n    deadline: 7s\n")
		}
	}
	return []byte(b.String())
}
