package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed" // the scripts
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/claim.lua
var claimText string

//go:embed lua/fence.lua
var fenceText string

//go:embed lua/complete.lua
var completeText string

//go:embed lua/fail.lua
var failText string

//go:embed lua/extend.lua
var extendText string

//go:embed lua/lookup.lua
var lookupText string

//go:embed lua/purge.lua
var purgeText string

var (
	claimScript    = newScript(claimText)
	completeScript = newScript(fenceText + completeText)
	failScript     = newScript(fenceText + failText)
	extendScript   = newScript(fenceText + extendText)
	lookupScript   = newScript(lookupText)
	purgeScript    = newScript(purgeText)
)

// script is what the server does in one step. Servers know scripts by the SHA-1 of their text.
type script struct{ text, hash string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// byHash and byText are the two ways to name the script in a command.
func (s script) byHash(key string, args []any) once { return newCommand("evalsha", s.hash, key, args) }
func (s script) byText(key string, args []any) once { return newCommand("eval", s.text, key, args) }

// once is a command that the client never sends a second time by itself. If its answer was lost nobody
// knows whether it took effect, and a copy of it would meet what it did itself: a claim would find
// itself busy.
type once struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (once) NoRetry() bool { return true }

// newCommand returns a command with one key. The client's own retries use the context of Process.
func newCommand(name, script, key string, args []any) once {
	cmd := redis.NewCmd(context.Background(), append([]any{name, script, 1, key}, args...)...)
	cmd.SetFirstKeyPos(3)
	return once{cmd}
}

// run has the server run the script on one key. Only a server that does not know the script yet is
// asked twice.
func (s *Store) run(ctx context.Context, sc script, key string, args ...any) (reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	cmd := sc.byHash(key, args)
	err := s.client.Process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = sc.byText(key, args)
		err = s.client.Process(ctx, cmd)
	}
	if err != nil {
		return nil, err
	}
	return cmd.Slice()
}
