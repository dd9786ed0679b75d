package sqlite

import "os"

// lockDatabase locks the database itself, by whatever name it is reached. On Linux flock(2) is apart from the locks of
// fcntl(2) that SQLite takes, on the file systems that [onefile.Local] lets through.
func lockDatabase(f *os.File) error { return lockFile(f) }
