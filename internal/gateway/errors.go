package gateway

import (
	"errors"
	"strings"

	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/settings"
)

// Errors of [Gateway.Reload] besides what its configuration says, and [cells.IntroducedError]. Nothing was changed but by
// that one.
var (
	// ErrNothingToReload says that the gateway was started without a way to read its configuration again.
	ErrNothingToReload = errors.New("there is no configuration to read again")
	// ErrStopping says that the gateway stops.
	ErrStopping = errors.New("the gateway is stopping")
	// ErrNotOpen says that the store was away when the gateway started, and still is.
	ErrNotOpen = errors.New("the store was away when the gateway started, and is looked for every second; reload again when the log says that it is there")
)

// RestartError says that a new configuration changes settings that take a new process. Nothing was changed.
type RestartError struct {
	// Settings are their keys.
	Settings []string
}

func (e *RestartError) Error() string {
	return "needs a restart: " + strings.Join(e.Settings, ", ") + "; nothing was changed"
}

// leaves says in words what a reload that failed has changed.
func leaves(err error) string {
	var introduced *cells.IntroducedError
	if errors.As(err, &introduced) {
		return "the rest of the configuration is not used; reload again"
	}
	return "nothing was changed"
}

// decide returns the changes in words, or why they cannot be made while the gateway runs.
func decide(changes []settings.Change) (changed []string, err error) {
	var restart []string
	for _, c := range changes {
		changed = append(changed, c.Text)
		if c.Restart {
			restart = append(restart, c.Setting)
		}
	}
	if len(restart) > 0 {
		return nil, &RestartError{restart}
	}
	return changed, nil
}
