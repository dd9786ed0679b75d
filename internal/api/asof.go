package api

import (
	"net/http"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// AsOfHeader says in an answer that it was read from a standby (store_read), and up to which moment it is complete.
const AsOfHeader = "Hookonce-As-Of"

// AsOf returns the moment that the header of an answer names. Zero: it was read where it is written.
func AsOf(h http.Header) time.Time {
	moment, _ := time.Parse(time.RFC3339Nano, h.Get(AsOfHeader)) // zero of what is none
	return moment
}

// dated has nothing decided by what a standby says, and answers that were read there say how old they are.
func dated(changed func(), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if changed != nil {
				defer changed()
			}
			next.ServeHTTP(w, r.WithContext(journal.Deciding(r.Context())))
			return
		}
		ctx, asOf := journal.NotingAsOf(r.Context())
		next.ServeHTTP(&datedWriter{ResponseWriter: w, asOf: asOf}, r.WithContext(ctx))
	})
}

// datedWriter adds the moment to an answer, when its header goes out.
type datedWriter struct {
	http.ResponseWriter
	asOf *journal.AsOf
	sent bool
}

// WriteHeader implements [http.ResponseWriter].
func (w *datedWriter) WriteHeader(status int) {
	w.date()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *datedWriter) Write(p []byte) (int, error) {
	w.date()
	return w.ResponseWriter.Write(p)
}

func (w *datedWriter) date() {
	if w.sent {
		return
	}
	w.sent = true
	if moment := w.asOf.Moment(); !moment.IsZero() {
		w.Header().Set(AsOfHeader, moment.UTC().Format(time.RFC3339Nano))
	}
}

// Unwrap is for [http.ResponseController], by which streams are flushed.
func (w *datedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
