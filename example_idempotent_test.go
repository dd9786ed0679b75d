package hookonce_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

func ExampleIdempotent() {
	store := memstore.New() // in production: pgstore.New(pool) or sqlstore.New(db, sqlstore.SQLite)

	mux := http.NewServeMux()
	mux.Handle("POST /charges", hookonce.Idempotent(store, "charges",
		func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			tx.OnCommit(func() { fmt.Println("charged") }) // commits with the claim and the answer
			w.WriteHeader(http.StatusCreated)
			_, err := io.WriteString(w, `{"id":"ch_1"}`)
			return err
		},
		hookonce.WithScope(func(r *http.Request) (string, error) {
			account, _, _ := r.BasicAuth() // authenticated before
			return account, nil
		})))

	// The customer clicks twice; then somebody uses the key for something else.
	for _, body := range []string{`{"amount":10}`, `{"amount":10}`, `{"amount":99}`} {
		r := httptest.NewRequest(http.MethodPost, "/charges", strings.NewReader(body))
		r.SetBasicAuth("acct_1", "fake")
		r.Header.Set("Idempotency-Key", `"8e03978e-40d5-43dd-bc93-6894a57f9324"`)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Printf("%d replayed=%q\n", w.Code, w.Header().Get("Idempotency-Replayed"))
	}
	// Output:
	// charged
	// 201 replayed=""
	// 201 replayed="true"
	// 422 replayed=""
}

// A card that is declined: the charge is undone, and every copy is told so without asking the card again.
func ExampleIdempotent_rollback() {
	store := memstore.New()

	h := hookonce.Idempotent(store, "charges",
		func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			tx.OnCommit(func() { fmt.Println("charged") }) // never: it is rolled back
			fmt.Println("the card is asked")
			w.WriteHeader(http.StatusPaymentRequired)
			io.WriteString(w, `{"error":"card declined"}`)
			return fmt.Errorf("the card was declined: %w", hookonce.ErrRollback)
		},
		hookonce.WithoutScope())

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/charges", strings.NewReader(`{"amount":10}`))
		r.Header.Set("Idempotency-Key", "order-7")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%d %s replayed=%q\n", w.Code, w.Body, w.Header().Get("Idempotency-Replayed"))
	}
	// Output:
	// the card is asked
	// 402 {"error":"card declined"} replayed=""
	// 402 {"error":"card declined"} replayed="true"
}

func ExampleIdempotentLease() {
	store := memstore.New() // in production a store that other processes share

	print := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("printed") // outside any transaction
		io.WriteString(w, "label 1")
	})
	h := hookonce.IdempotentLease(store, "receipts", print, hookonce.WithoutScope())
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/labels", strings.NewReader("parcel 7"))
		r.Header.Set("Idempotency-Key", "parcel-7")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%d %s replayed=%q\n", w.Code, w.Body, w.Header().Get("Idempotency-Replayed"))
	}
	// Output:
	// printed
	// 200 label 1 replayed=""
	// 200 label 1 replayed="true"
}
