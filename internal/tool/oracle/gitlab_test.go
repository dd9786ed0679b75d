package oracle

import (
	"errors"

	"github.com/go-playground/webhooks/v6/gitlab"

	"github.com/hookonce/hookonce"
)

// gitlabSDK is the community's library: GitLab's own client does not verify.
func gitlabSDK() sdk {
	library, _ := gitlab.New(gitlab.Options.Secret(secret))
	return sdk{
		module:   "github.com/go-playground/webhooks/v6",
		provider: "gitlab",
		accepts: func(req *hookonce.Request) bool {
			_, err := library.Parse(wire(req), gitlab.PushEvents)
			return !errors.Is(err, gitlab.ErrGitLabTokenVerificationFailed)
		},
	}
}
