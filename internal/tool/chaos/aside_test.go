package chaos

import (
	"context"
	"fmt"
	"time"
)

// impatient returns something to do aside: one of these statements, under a context that ends soon or has ended
// already.
func (b *bank) impatient(statements ...string) func(ctx context.Context, do statement) error {
	return func(ctx context.Context, do statement) error {
		ctx, cancel := context.WithTimeout(ctx, b.upTo(3*time.Millisecond))
		defer cancel()
		return do(ctx, statements[b.n(len(statements))])
	}
}

// entangled returns something to do aside: it takes locks in any order, so that there are deadlocks.
func (b *bank) entangled() func(ctx context.Context, do statement) error {
	return func(ctx context.Context, do statement) (err error) {
		for range 3 {
			if err := do(ctx, fmt.Sprintf("UPDATE accounts SET balance = balance + 0 WHERE id = %d", b.n(accounts))); err != nil {
				return err
			}
		}
		return nil
	}
}

// hidden returns something to do aside, one of those given, and nobody looks at what came of it.
func (b *bank) hidden(asides ...func(ctx context.Context, do statement) error) func(ctx context.Context, do statement) error {
	return func(ctx context.Context, do statement) error {
		_ = asides[b.n(len(asides))](ctx, do)
		return nil
	}
}
