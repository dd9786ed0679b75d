package idempotency

import (
	"encoding/json"
	"net/http"
)

// problem answers with a problem document of RFC 9457.
func problem(w http.ResponseWriter, status int, name, detail string) {
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"urn:hookonce:problem:" + name, http.StatusText(status), status, detail})
	if err != nil {
		panic(err) // strings and a number always encode
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}
