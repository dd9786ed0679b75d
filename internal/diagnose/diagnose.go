// Package diagnose says why a captured request is not verified, in words for people. It tries what may have happened to the
// body, the headers, the URL and the secret on the way, and names the change with which the request would have been verified.
// Where nothing fits it says what the request and the secret look like.
//
// It is for people who look at a request that they have at hand. Nothing here accepts a request, nothing is on the way of one
// through the gateway, and no text has a secret, a signature or a piece of a body in it. What is tried is bounded, whatever the
// capture is; see [Capture.Why].
package diagnose

import (
	"errors"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// Capture is a request with what it is to be verified by.
type Capture struct {
	// Spec describes the sender, and Settings are those of the endpoint.
	Spec     spec.Spec
	Settings spec.Settings
	// Provider is made of both. Nil: the secrets are of no form that the sender has.
	Provider *spec.Provider
	// Request is the request as it was captured.
	Request *hookonce.Request
	// Arrived is set if the time of arrival is known. Else it is taken to be the present, and an old request is no wonder.
	Arrived bool
	// Environ is the environment, in the form of os.Environ: a secret may be the name of one of its variables.
	Environ []string
}

// Cause says why a request is not verified.
type Cause struct {
	// Word is one of [Words]. Empty: there is nothing to say, because it is verified or cannot be decided now.
	Word Word
	// Text says it in a sentence, and Mend says what to do.
	Text, Mend string
	// Proven is set if the request was verified with the change that Word names, and nothing else changed but the tolerance for
	// its time. Otherwise it is what the request or the secret looks like.
	Proven bool
}

// Why returns why the request is not verified, where err is what [spec.New] or [spec.Provider.Open] said.
//
// It makes at most 4000 attempts, and feeds at most 512 MiB to hash functions. A body of more than 4 MiB is not written anew as
// another JSON encoder would, and one of more than 64 MiB is left as it is. Nothing is fetched beyond what Open itself fetches.
func (c Capture) Why(err error) Cause {
	var rejection *hookonce.RejectError
	if !errors.As(err, &rejection) && !errors.Is(err, spec.ErrSecret) {
		return Cause{}
	}
	c.Spec = c.Spec.WithDefaults()
	if c.Request.Header == nil {
		req := *c.Request
		req.Header = http.Header{}
		c.Request = &req
	}
	if rejection != nil {
		switch rejection.Reason {
		case hookonce.ReasonTimestampOld, hookonce.ReasonTimestampFuture:
			return c.clock()
		case hookonce.ReasonHandshakeRefused:
			return c.challenge(rejection)
		case hookonce.ReasonSignatureMalformed: // what it lacks, no other way of reading the request makes good
			if found, ok := c.httpSignature(); ok && found.Word != HeaderMissing {
				return found
			}
		}
	}
	s := newSearch(c)
	if found, ok := s.run(); ok {
		return found
	}
	return c.guess(rejection)
}

// challenge says why a request is no challenge that is answered.
func (c Capture) challenge(r *hookonce.RejectError) Cause {
	if r.Status == http.StatusMethodNotAllowed {
		return Cause{Word: Method, Text: "the request is a " + shown(c.Request.Method) + ", and webhooks are sent with " + strings.Join(c.Spec.Methods, " or "),
			Mend: "leave --method out, unless the sender checks the endpoint in this way"}
	}
	return Cause{Word: Challenge, Text: "the sender's challenge is not answered: " + r.Detail, Mend: "compare --token with what is entered at the sender"}
}

// note is one thing that is wrong.
type note struct {
	word Word
	// text is a main clause that begins with what is wrong: the body, the secret.
	text string
	mend string
}

// causeOf puts together what had to be changed.
func causeOf(about ...note) Cause {
	texts, mends := make([]string, len(about)), make([]string, 0, len(about))
	right := true
	for i, n := range about {
		texts[i] = n.text
		if n.mend != "" {
			mends = append(mends, n.mend)
		}
		right = right && !strings.HasPrefix(n.text, "the secret") && !strings.HasPrefix(n.text, "this is")
	}
	text := strings.Join(texts, ", and ")
	if right {
		text = "the secret is right, but " + text
	}
	return Cause{Word: about[0].word, Text: text, Mend: strings.Join(mends, "; "), Proven: true}
}

// shown returns a name that a stranger may have chosen without what steers a terminal, and cut.
func shown(name string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
	return name[:min(len(name), 64)]
}
