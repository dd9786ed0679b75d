package dashboard_test

import (
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce/dashboard"
	"github.com/hookonce/hookonce/pgstore"
)

// Mount it in the admin mux that the program has already, behind the program's own idea of who is an admin.
func ExampleHandler() {
	var pool *pgxpool.Pool                                 // the application's
	var adminOf func(*http.Request) (name string, ok bool) // from its session
	mux := http.NewServeMux()

	hooks := dashboard.Handler(pgstore.New(pool), adminOf)
	mux.Handle("/admin/hookonce/", http.StripPrefix("/admin/hookonce", hooks))
}

// On a machine of one's own.
func ExampleLocal() {
	var pool *pgxpool.Pool
	_ = http.Server{
		Addr:    "127.0.0.1:8082",
		Handler: dashboard.Handler(pgstore.New(pool), dashboard.Local),
	}
}
