package sqlitefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Keep is what to do about a process whose file was taken away.
const Keep = `do not stop or restart it yet: it may have the only copy of what it acknowledged, ` +
	`and docs/operating.md says under "When the file is taken away" how to save that`

// Sign writes into the lock beside a database which process has it and, once that is open, which file: info is what the open
// file is. Where it cannot be written nobody is told of it.
func Sign(lock *os.File, info fs.FileInfo) {
	text := fmt.Sprint(os.Getpid())
	if info != nil {
		text += fmt.Sprintf(" %d", inode(info))
	}
	if lock.Truncate(0) == nil {
		_, _ = lock.WriteAt([]byte(text+"\n"), 0)
	}
}

// Holder returns the process that signed the lock of the database at path last, as people are told of it.
func Holder(path string) string {
	process, _ := signed(path)
	return process
}

// signed returns which process signed the lock of a database, and the number of the file that it has open; 0: it has
// none yet.
func signed(path string) (process string, file uint64) {
	text, _ := os.ReadFile(path + ".lock")
	_, _ = fmt.Sscan(string(text), &process, &file)
	return process, file
}

// Taken returns an error that wraps [ErrUnsafe], names the process and says what to do, if one that holds the lock of the
// database at path has another file open than the one that is there, or none is there. It does not open the database: in a
// process that has it open that would drop the locks of SQLite (fcntl(2)). Only locks on Unix tell.
func Taken(path string) error {
	process, file := signed(path)
	if file == 0 {
		return nil // whoever has the lock looks at what is there before it signs for that
	}
	info, err := os.Stat(path)
	if err == nil && inode(info) == file || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !locked(path + ".lock") { // which is asked last: where nobody else holds the lock, to ask is to hold it for a moment
		return nil
	}
	return fmt.Errorf("%s: %w: process %s has the file open that was there, and it was deleted, moved or replaced; %s", path, ErrUnsafe, process, Keep)
}
