package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/settings"
)

// askedGateways are the running gateways that are asked what they refused: it is in their memory alone.
type askedGateways struct{ addresses []string }

// errNoAdmin says that nobody can be asked.
var errNoAdmin = errors.New("the configuration's admin names no port to ask a gateway at; name it with --admin")

// clients returns what asks them. A token of the configuration is that of an operator, if it has one: which may do all that is asked here.
func (a *askedGateways) clients(w *env, cfg *config.Config) ([]*adminClient, error) {
	addresses := a.addresses
	if of := settings.Lookup(w.environ, config.AdminURLVariable); len(addresses) == 0 && of != "" {
		addresses = []string{of}
	}
	if of := adminURL(cfg); len(addresses) == 0 && of != "" {
		addresses = []string{of}
	}
	token := settings.Lookup(w.environ, config.AdminTokenVariable)
	if len(cfg.AdminTokens) > 0 {
		i := max(0, slices.IndexFunc(cfg.AdminTokens, func(t config.AdminToken) bool { return t.Role == config.RoleOperator }))
		token = cmp.Or(token, cfg.AdminTokens[i].Token.Reveal())
	}
	var clients []*adminClient
	for _, address := range addresses {
		u, err := parseAdminURL(address)
		if err != nil {
			return nil, err
		}
		clients = append(clients, newAdminClient(u, token))
	}
	return clients, nil
}

// refusalsOf returns what asks gateways why requests were refused, once for all keys. An error of it says which gateway did not answer;
// what others said is there all the same.
func refusalsOf(gateways []*adminClient) func(context.Context, string, []string) (map[string]string, error) {
	var why map[string]string
	var failed error
	return func(ctx context.Context, source string, _ []string) (map[string]string, error) {
		if why == nil {
			if why = map[string]string{}; len(gateways) == 0 {
				failed = errNoAdmin
			}
			for _, gateway := range gateways {
				failed = errors.Join(failed, gateway.refused(ctx, source, why))
			}
		}
		return why, failed
	}
}

// refused fills in why the gateway refused requests to the source, by the key that they would have had: the last refusal counts. Nobody
// verified these keys: they are for people.
func (a *adminClient) refused(ctx context.Context, source string, why map[string]string) error {
	var list api.RefusalList
	if err := a.get(ctx, "/sources/"+segment(source)+"/refusals", nil, &list); err != nil {
		var refused *refusedError
		if errors.As(err, &refused) {
			return fmt.Errorf("the gateway at %s says: %w", strings.TrimSuffix(a.base, api.Base), err)
		}
		return err
	}
	for i := range list.Refusals {
		r := &list.Refusals[i]
		if _, later := why[r.Key]; r.Key != "" && !later {
			why[r.Key] = r.Words
		}
	}
	return nil
}

// adminURL is where a gateway with this configuration answers on this machine; empty if that cannot be told.
func adminURL(cfg *config.Config) string {
	host, port, err := net.SplitHostPort(cfg.Admin)
	if err != nil || port == "0" {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if cfg.AdminTLS.Cert != "" {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
