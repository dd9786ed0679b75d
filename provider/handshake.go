package provider

import (
	"net/http"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

// maxEcho is the longest challenge, in bytes, that is echoed.
const maxEcho = 1024

// handshake is a [Handshake] in compiled form.
type handshake struct {
	when value
	is   string
	echo value
}

// handshake returns the answer to a handshake, nil if the request is not one. The challenge goes back
// as text/plain, so that nothing in it can be anything but text.
func (p *Provider) handshake(r *reading) *hookonce.Answer {
	for i := range p.hands {
		h := &p.hands[i]
		if r.text(&h.when) != h.is {
			continue
		}
		echo := r.text(&h.echo)
		if echo == "" || len(echo) > maxEcho || !utf8.ValidString(echo) {
			continue
		}
		return &hookonce.Answer{Status: http.StatusOK, ContentType: "text/plain; charset=utf-8", Body: []byte(echo)}
	}
	return nil
}
