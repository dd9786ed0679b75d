package config

import (
	"time"

	"github.com/spf13/pflag"
)

// Input is everything that a configuration is read from.
type Input struct {
	// Path is the file's name as it appears in messages. Empty: there is no file, and a
	// configuration without sources is allowed.
	Path string
	// Data is the file's content.
	Data []byte
	// Environ is the environment, in the form of os.Environ.
	Environ []string
	// Flags are the flags that [Flags] declared, parsed. Nil: none.
	Flags *pflag.FlagSet
	// ReadFile reads the files that secrets refer to, as os.ReadFile does.
	ReadFile func(name string) ([]byte, error)
	// NoSecrets leaves the secrets of sources unread, for commands that only need the store: what
	// migrates a database need not hold them.
	NoSecrets bool
	// Now is the clock that tells which secrets are valid. Nil means [time.Now].
	Now func() time.Time
}

func (in Input) now() time.Time {
	if in.Now == nil {
		return time.Now()
	}
	return in.Now()
}
