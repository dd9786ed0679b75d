package storetest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// A store that answers an error to a racer fails its case. A case that waited for that racer would hang instead, and nobody would
// read of which error.
func TestRaceTellsOfAnError(t *testing.T) {
	const env = "STORETEST_FAILS"
	if os.Getenv(env) != "" {
		RunConcurrent(t, Config{Open: func(testing.TB) func(Options) hookonce.Store {
			base := memstore.New()
			return func(o Options) hookonce.Store { return refuser{base.With(memstore.WithClock(o.Clock))} }
		}})
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$/^concurrent$/what_is_pinned$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), env+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "unexpected error: "+errOther.Error()) || strings.Contains(string(out), "timed out") {
		t.Errorf("%v\n%s", err, out)
	}
}

var errOther = errors.New("other content")

// refuser is a store that fails for other content.
type refuser struct{ hookonce.Store }

func (r refuser) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if string(req.Digest) == string(otherContent(req.Key).Digest) {
		return hookonce.Claim{}, errOther
	}
	return r.Store.Claim(ctx, req)
}
