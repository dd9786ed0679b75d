package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/redis/go-redis/v9"
)

// page is how many keys a step of Purge looks at. A step keeps the server busy for about a
// millisecond.
const page = 500

// Purge implements [hookonce.Store]. Nobody needs to call it for claims that expire by themselves (see
// [WithRetention]). There is no index of done claims, which would double the memory that they take: Purge
// walks through the keys of every primary in steps, from the beginning each time, so a large limit costs
// less than a small one. Each claim is deleted by itself. One in a slot of a cluster that is being moved may
// be left to a later call. Beside an error n counts those that are known to be deleted.
func (s *Store) Purge(ctx context.Context, req hookonce.PurgeRequest) (n int, err error) {
	if err := req.Validate(s.now()); err != nil {
		return 0, err
	}
	if k := req.Kind; k != "" && k != hookonce.PurgeEvents && k != hookonce.PurgeFailed && k != hookonce.PurgeOnce {
		return 0, ctx.Err() // none of these is ever kept here
	}
	nodes, err := s.primaries(ctx)
	if err != nil {
		return 0, fmt.Errorf("redisstore: purge: %w", err)
	}
	p := purge{PurgeRequest: req}
	p.from, p.to = req.Span()
	_, p.cluster = s.client.(*redis.ClusterClient)
	for _, node := range nodes {
		deleted, err := p.node(ctx, node, s.prefix+claimKeys, req.Limit-n)
		if n += deleted; err != nil {
			return n, fmt.Errorf("redisstore: purge: %w", err)
		}
	}
	return n, nil
}

// primaries returns the servers that hold the claims.
func (s *Store) primaries(ctx context.Context) (nodes []redis.Cmdable, err error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{s.client}, nil
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	return nodes, err
}

// purge is one call of Purge.
type purge struct {
	hookonce.PurgeRequest
	from, to time.Time
	cluster  bool // the servers of a whole cluster are walked through
}

func (p purge) node(ctx context.Context, node redis.Cmdable, kind string, limit int) (n int, err error) {
	for cursor := uint64(0); n < limit; {
		var keys []string
		if keys, cursor, err = node.ScanType(ctx, cursor, p.pattern(kind), page, "hash").Result(); err != nil {
			return n, err
		}
		deleted, err := p.keys(ctx, node, keys, limit-n)
		if n += deleted; err != nil || cursor == 0 {
			return n, err
		}
	}
	return n, nil
}

// pattern matches the names of the keys that the request may be about.
func (p purge) pattern(kind string) string {
	source := p.Stored()
	if source == "" {
		return kind + "{*"
	}
	special := strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, `\`, `\\`, "^", `\^`)
	return kind + "{" + strconv.Itoa(len(source)) + ":" + special.Replace(source) + "*"
}

// sourceOf returns the source in the name of a key, which [hookonce.JoinKey] put in front with its length; empty if there
// is none.
func sourceOf(key string) string {
	_, joined, _ := strings.Cut(key, claimKeys+"{")
	length, rest, _ := strings.Cut(joined, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return ""
	}
	return rest[:n]
}

// keys deletes those of the keys that may go, at most limit.
func (p purge) keys(ctx context.Context, node redis.Cmdable, keys []string, limit int) (n int, err error) {
	keys = slices.DeleteFunc(keys, func(key string) bool {
		source := sourceOf(key)
		return source == "" || !p.Covers(source)
	})
	old, err := p.old(ctx, node, keys)
	if err != nil {
		return 0, err
	}
	if p.Dry {
		return min(len(old), limit), nil
	}
	for len(old) > 0 && n < limit {
		batch := old[:min(len(old), limit-n)]
		old = old[len(batch):]
		deleted, err := p.delete(ctx, node, batch)
		if n += deleted; err != nil {
			return n, err
		}
	}
	return n, nil
}

// old returns those of the keys whose claims may go, as they were when it looked.
func (p purge) old(ctx context.Context, node redis.Cmdable, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	answers := make(map[string]*redis.SliceCmd, len(keys))
	err := p.pipelined(ctx, node, func(pipe redis.Pipeliner) {
		for _, key := range keys {
			answers[key] = pipe.HMGet(ctx, key, "state", "updated")
		}
	})
	return slices.DeleteFunc(keys, func(key string) bool {
		r := reply(answers[key].Val())
		if len(r) != 2 || !p.Over(hookonce.State(r.text(0))) {
			return true
		}
		updated, err := strconv.ParseInt(r.text(1), 10, 64)
		return err != nil || updated < p.from.UnixMicro() || updated >= p.to.UnixMicro()
	}), err
}

// delete deletes those of the keys whose claims may still go.
func (p purge) delete(ctx context.Context, node redis.Cmdable, keys []string) (n int, err error) {
	over := []any{string(hookonce.StateDone)}
	if p.Kind == hookonce.PurgeFailed {
		over = []any{string(hookonce.StateFailed), string(hookonce.StateDead)}
	}
	var answers []once
	err = p.pipelined(ctx, node, func(pipe redis.Pipeliner) {
		for _, key := range keys {
			cmd := purgeScript.byText(key, append([]any{p.from.UnixMicro(), p.to.UnixMicro()}, over...))
			answers = append(answers, cmd)
			_ = pipe.Process(ctx, cmd) // which puts it in line, and does not fail
		}
	})
	for _, cmd := range answers {
		if gone, _ := cmd.Int(); gone == 1 {
			n++
		}
	}
	return n, err
}

// pipelined sends what fill puts in line at once. In a cluster it is no error that another server is to be asked about a
// key, whose slot is being moved: the key is on this one no more, or not for good yet.
func (p purge) pipelined(ctx context.Context, node redis.Cmdable, fill func(pipe redis.Pipeliner)) error {
	commands, err := node.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		fill(pipe)
		return nil
	})
	if !p.cluster || !elsewhere(err) {
		return err
	}
	for _, cmd := range commands { // err is the first one's, and others may have another
		if err := cmd.Err(); err != nil && !elsewhere(err) {
			return err
		}
	}
	return nil
}

func elsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED ") || redis.HasErrorPrefix(err, "ASK ")
}
