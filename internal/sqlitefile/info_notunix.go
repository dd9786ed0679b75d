//go:build !unix

package sqlitefile

import "io/fs"

// links returns how many names a file has; 0: that is not known.
func links(fs.FileInfo) uint64 { return 0 }

// inode returns 0: the number of a file is not known.
func inode(fs.FileInfo) uint64 { return 0 }

// locked returns false: here a file that is open is not taken away.
func locked(string) bool { return false }
