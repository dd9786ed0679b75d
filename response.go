package hookonce

import (
	"context"
	"net/http"
)

// Response is an HTTP response in full, as it was given to the first of several equal requests.
type Response struct {
	Status int
	// Header holds the header fields that are given again, under canonical names.
	Header http.Header
	Body   []byte
}

// ResponseStore is a [Store] that keeps the response of finished work with the claim, so that a copy
// of the request gets the same.
type ResponseStore interface {
	Store

	// CompleteWith is Complete, and keeps r in the same atomic step: whoever sees the claim done finds
	// the response, and a caller whose token is not current stores nothing. Completing a claim that
	// this token already completed succeeds and keeps the response that is there.
	// Errors: [ErrStale], [ErrNotFound], and [ErrResponseTooLarge] if the store takes none of that size.
	CompleteWith(ctx context.Context, c Claim, r Response) error

	// Response returns what was kept under ref. Purge deletes it with the claim.
	// Errors: [ErrNotFound] if there is none; the claim may still be there.
	Response(ctx context.Context, ref Ref) (Response, error)
}

// TxResponseStore is a [TxStore] that keeps the response in the transaction that holds the claim and
// the effect.
type TxResponseStore[Tx any] interface {
	TxStore[Tx]
	ResponseStore

	// KeepResponse stores r under ref inside tx, in which the caller claimed ref. It becomes visible
	// when tx commits, and replaces what an earlier attempt left there. After an error tx must be
	// rolled back. Errors: [ErrResponseTooLarge] if the store takes none of that size.
	KeepResponse(ctx context.Context, tx Tx, ref Ref, r Response) error
}

// Awaiter is a [ResponseStore] that can tell when work is over that another process does.
type Awaiter interface {
	// Await returns nil once the claim under ref is not processing, at once if it is not now. It may
	// return nil too early, but not too often, and an error when ctx ends or it cannot tell; then the
	// caller asks again after a while.
	Await(ctx context.Context, ref Ref) error
}
