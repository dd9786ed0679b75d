//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
)

// A first-party endpoint: the client sends a key, and gets the answer that was given first under it.

// keyed takes the id of the generator's requests for the key that a client would send.
func keyed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header["Idempotency-Key"] = r.Header["Webhook-Id"]
		next.ServeHTTP(w, r)
	})
}

// ofTenant says on whose behalf a request comes: here one tenant's. A real one has authenticated it.
func ofTenant(*http.Request) (string, error) { return "tenant_81", nil }

// booked is the answer to a booking.
func booked(key string) []byte {
	return fmt.Appendf(nil, `{"payment":%q,"state":"booked","cents":4200,"currency":"EUR","links":{"self":"/payments/%s","refund":"/payments/%s/refund"}}`, key, key, key)
}

// libraryIdempotent books a payment through hookonce.
func libraryIdempotent(ctx context.Context, o serverOrder) (http.Handler, error) {
	store, err := openStore(ctx, o)
	if err != nil {
		return nil, err
	}
	return keyed(hookonce.Idempotent(store, "idempotency", func(w http.ResponseWriter, r *http.Request, tx pgx.Tx) error {
		key := r.Header.Get("Idempotency-Key")
		if _, err := tx.Exec(r.Context(), insertEffect, key, 4200); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_, err := w.Write(booked(key))
		return err
	}, hookonce.WithScope(ofTenant), hookonce.WithLogger(newLogger(slog.LevelInfo)))), nil
}

const createKeys = `CREATE TABLE IF NOT EXISTS idempotency_keys (
	tenant text NOT NULL, key text NOT NULL, fingerprint bytea NOT NULL, created_at timestamptz NOT NULL,
	status int, header jsonb, body bytea, PRIMARY KEY (tenant, key))`

// handIdempotent does the same the way it is written by hand: a row for the key, locked, the effect, and the
// answer in the row, in one transaction.
func handIdempotent(ctx context.Context, o serverOrder) (http.Handler, error) {
	pool, err := openPool(ctx, o, createEffects, createKeys)
	if err != nil {
		return nil, err
	}
	return keyed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "incomplete", http.StatusBadRequest)
			return
		}
		tenant, _ := ofTenant(r)
		b := &booking{tenant: tenant, key: r.Header.Get("Idempotency-Key"), fingerprint: fingerprint(r, body)}
		err = pgx.BeginFunc(r.Context(), pool, func(tx pgx.Tx) error { return b.run(r.Context(), tx) })
		switch {
		case errors.Is(err, errReused):
			http.Error(w, "the key belongs to another request", http.StatusUnprocessableEntity)
			return
		case err != nil:
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		for name, values := range b.header {
			w.Header()[name] = values
		}
		w.WriteHeader(*b.status)
		w.Write(b.body) // whoever is gone does not read it
	})), nil
}

// booking is one request and its row.
type booking struct {
	tenant, key string
	fingerprint []byte

	status *int // nil: not booked yet
	header http.Header
	body   []byte
}

var errReused = errors.New("the key belongs to another request")

// run locks the row of the key, and books and answers unless that is done.
func (b *booking) run(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO idempotency_keys (tenant, key, fingerprint, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		b.tenant, b.key, b.fingerprint, time.Now())
	if err != nil {
		return err
	}
	var first, header []byte
	err = tx.QueryRow(ctx, `SELECT fingerprint, status, header, body FROM idempotency_keys WHERE tenant = $1 AND key = $2 FOR UPDATE`,
		b.tenant, b.key).Scan(&first, &b.status, &header, &b.body)
	switch {
	case err != nil:
		return err
	case string(first) != string(b.fingerprint):
		return errReused
	case b.status != nil:
		return json.Unmarshal(header, &b.header)
	}
	return b.book(ctx, tx)
}

func (b *booking) book(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, insertEffect, b.key, 4200); err != nil {
		return err
	}
	ok := http.StatusOK
	b.status, b.header, b.body = &ok, http.Header{"Content-Type": {"application/json"}}, booked(b.key)
	_, err := tx.Exec(ctx, `UPDATE idempotency_keys SET status = $3, header = $4, body = $5 WHERE tenant = $1 AND key = $2`,
		b.tenant, b.key, b.status, b.header, b.body)
	return err
}

// fingerprint tells requests apart.
func fingerprint(r *http.Request, body []byte) []byte {
	h := sha256.New()
	io.WriteString(h, r.Method+" "+r.URL.RequestURI()+"\n")
	h.Write(body)
	return h.Sum(nil)
}
