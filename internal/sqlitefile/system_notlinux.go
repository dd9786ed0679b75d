//go:build !linux

package sqlitefile

import "errors"

func mountPoints() []string { return nil }

// FileSystem says what kind of file system a folder is on, and whether it is one that several machines share.
func FileSystem(string) (kind string, network bool, err error) {
	return "", false, errors.New("this is only known on Linux")
}
