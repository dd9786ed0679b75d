package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/cmd/hookonce/internal/outbox"
)

// What a command line says wrong is told without the secrets that it holds.
func TestRelayUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "--to NAME=URL"},
		{"--to mail", "write NAME=URL"},
		{"--to =http://x.example", "write NAME=URL"},
		{"--to mail=ftp://x.example/fake-secret", "--to mail: relay: POST: the address must begin with http:// or https://"},
		{"--to mail=http://x.example --to mail=http://y.example", "given twice"},
		{"--to mail=env:ABSENT", "--to mail: the environment variable ABSENT is not set"},
		{"--to mail=http://x.example --secret mail=fake-secret", "not the secret itself"},
		{"--to mail=http://x.example --secret mail=env:BAD", "whsec_"},
		{"--to mail=http://x.example --secret crm=env:GOOD", `nothing is posted for "crm"`},
		{"--to mail=http://x.example --http-signature mail=file:x", "write NAME=KEYID=file:PATH"},
		{"--to mail=http://x.example --http-signature mail=k1=fake-secret", "not the key itself"},
		{"--to mail=http://x.example --http-signature mail=k1=env:ABSENT", "--http-signature mail=k1: the environment variable ABSENT is not set"},
		{"--to mail=http://x.example --http-signature mail=k1=env:GOOD", `the key "k1" begins with whsec_`},
		{"--to mail=http://x.example --http-signature crm=k1=env:GOOD", `nothing is posted for "crm"; add --to`},
		{"--to mail=http://x.example --permanent 200", "200 cannot end the attempts"},
		{"--to mail=http://x.example --concurrency 0", "--concurrency"},
		{"--to mail=http://x.example --attempts 0", "--attempts"},
		{"--to mail=http://x.example --lease 1ms", "--lease"},
		{"--to mail=http://x.example --max-wait 1s", "--max-wait"},
		{"--to mail=http://x.example more", `the command takes no arguments, but "more" was given`},
		{"list --state gone", `"gone" is not a state`},
		{"list --limit 0", "--limit"},
		{"redrive", "--all-dead"},
		{"redrive 1 --all-dead", "--all-dead"},
		{"redrive x", `"x" is not the number`},
	} {
		out, log := new(bytes.Buffer), new(bytes.Buffer)
		w := &env{
			args:    append([]string{"hookonce", "relay"}, strings.Fields(c.args)...),
			environ: []string{"BAD=whsec_fake-secret%", "GOOD=whsec_ZmFrZQ=="}, out: out, err: log,
		}
		if code := execute(w); code != exitUsage || !strings.Contains(log.String(), c.want) || strings.Contains(log.String(), "fake-secret") {
			t.Errorf("relay %s: exit status %d\n%s", c.args, code, log)
		}
	}
}

// graveyard is an outbox of which some effects are dead. Those with an odd number are redriven by somebody else first.
type graveyard struct {
	outbox.Store
	dead     []hookonce.QueuedEffect
	payloads int // the most that were read at once
}

// Effects reads payloads, of up to a mebibyte each.
func (g *graveyard) Effects(_ context.Context, s hookonce.State, after int64, limit int) ([]hookonce.QueuedEffect, error) {
	page := g.above(s, after, limit)
	g.payloads = max(g.payloads, len(page))
	return page, nil
}

func (g *graveyard) ListEffects(_ context.Context, q hookonce.EffectQuery) ([]hookonce.QueuedEffect, error) {
	if !q.Dead {
		return nil, errors.New("others than those that were given up are asked for")
	}
	var after int64
	if q.After != nil {
		after = q.After.ID
	}
	return g.above(hookonce.StateDead, after, q.Limit), nil
}

func (g *graveyard) above(s hookonce.State, after int64, limit int) (page []hookonce.QueuedEffect) {
	for _, e := range g.dead {
		if e.State == s && e.ID > after && len(page) < limit {
			page = append(page, e)
		}
	}
	return page
}

func (g *graveyard) RedriveEffect(_ context.Context, id int64) error {
	e := &g.dead[id-1]
	e.State = hookonce.StateFailed
	if id%2 == 1 {
		return hookonce.ErrStale
	}
	return nil
}

// All effects that are dead are redriven, however many they are, and no payload is read for that.
func TestRedriveAll(t *testing.T) {
	for _, n := range []int{0, 1, pageSize, 2*pageSize + 50} {
		g := graveyardOf(n)
		var out bytes.Buffer
		if err := redriveAll(t.Context(), &env{out: &out}, g); err != nil || out.String() != fmt.Sprintf("%d effect(s) are due.\n", n/2) {
			t.Errorf("of %d: %q, %v", n, &out, err)
		}
		if left := g.above(hookonce.StateDead, 0, 1); len(left) > 0 {
			t.Errorf("of %d some are dead still: %v", n, left)
		}
		if g.payloads > 0 {
			t.Errorf("of %d the payloads of %d were read at once", n, g.payloads)
		}
	}
}

func graveyardOf(n int) *graveyard {
	g := &graveyard{}
	for i := range n {
		g.dead = append(g.dead, hookonce.QueuedEffect{ID: int64(i + 1), State: hookonce.StateDead, Effect: hookonce.Effect{Payload: []byte("four")}})
	}
	return g
}

// As many effects are listed as are asked for, and few of their payloads are in memory at once.
func TestEffectsAreListedInPages(t *testing.T) {
	const after = 3
	for _, c := range []struct{ there, limit, want int }{
		{after, 10, 0}, {after + 1, 10, 1}, {after + 500, payloadsAtOnce, payloadsAtOnce}, {after + 500, 2*payloadsAtOnce + 1, 2*payloadsAtOnce + 1},
		{after + 2*payloadsAtOnce, 10_000, 2 * payloadsAtOnce}, {after + 500, 10_000, 500},
	} {
		g := graveyardOf(c.there)
		got, err := listEffects(t.Context(), g, hookonce.StateDead, after, c.limit)
		if err != nil || len(got) != c.want || g.payloads > payloadsAtOnce {
			t.Errorf("%d of %d: %d are listed, want %d; %d payloads at once; %v", c.limit, c.there, len(got), c.want, g.payloads, err)
		}
		for i, e := range got {
			if e.ID != int64(after+1+i) || e.PayloadBytes != 4 {
				t.Fatalf("%d of %d: the effect in place %d is %+v", c.limit, c.there, i, e)
			}
		}
	}
}
