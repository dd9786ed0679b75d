//go:build !unix

package sqlitefile

import "io/fs"

// links returns how many names a file has; 0: that is not known.
func links(fs.FileInfo) uint64 { return 0 }
