//go:build !linux

package doctor

import "errors"

var errUnknown = errors.New("this is only known on Linux")

// Space returns how many bytes this user may still write to a folder's file system.
func Space(string) (uint64, error) { return 0, errUnknown }

// writable returns an error unless this user may write to the folder.
func writable(string) error { return nil }
