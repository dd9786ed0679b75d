//go:build !linux

package doctor

import "errors"

var errUnknown = errors.New("this is only known on Linux")

// mounted says what kind of file system a folder is on, and whether it is one that several machines share.
func mounted(string) (kind string, network bool, err error) { return "", false, errUnknown }

// space returns how many bytes this user may still write to a folder's file system.
func space(string) (uint64, error) { return 0, errUnknown }

// writable returns an error unless this user may write to the folder.
func writable(string) error { return nil }
