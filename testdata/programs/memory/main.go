// Command memory answers requests with an Idempotency-Key once, and forgets them when it ends. What it links is what such
// a program carries: see TestWhatProgramsCarry.
package main

import (
	"log"
	"net/http"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

func main() {
	http.Handle("POST /orders", hookonce.Idempotent(memstore.New(), "orders", order, hookonce.WithoutScope()))
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}

func order(w http.ResponseWriter, _ *http.Request, _ *memstore.Tx) error {
	w.WriteHeader(http.StatusCreated)
	return nil
}
