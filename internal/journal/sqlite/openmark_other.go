//go:build !linux

package sqlite

import "os"

func mark(*os.File)        {}
func unmark(*os.File)      {}
func marked(*os.File) bool { return false }
