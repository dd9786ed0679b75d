package hookonce

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// readBody returns the raw body of at most limit bytes, or the refusal to answer with.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *problem) {
	tooLarge := &problem{Status: http.StatusRequestEntityTooLarge, Type: "body-too-large", Detail: fmt.Sprintf("the body is larger than %d bytes", limit)}
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var exceeded *http.MaxBytesError
	switch {
	case errors.As(err, &exceeded):
		return nil, tooLarge
	case err != nil:
		return nil, &problem{Status: http.StatusBadRequest, Type: "body-incomplete", Detail: "the body ended before it was complete"}
	}
	return body, nil
}
