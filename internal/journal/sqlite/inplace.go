package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"modernc.org/sqlite"

	"github.com/hookonce/hookonce/internal/sqlitefile"
)

// ErrGone says that the file, or the log beside it, was deleted, moved or replaced while the store had it open. What is
// stored from then on would not be there after a restart.
var ErrGone = errors.New("the file is not where it was opened")

// standing knows whether the files that SQLite has open are those that a restart would find. SQLite goes on with files
// that have no name any more, and does not notice.
type standing struct {
	files []placed
	gone  atomic.Pointer[error] // what was found; it stays until the store is opened again
	over  atomic.Bool           // a file was written over in place
	size  atomic.Int64          // of the database, when that was last looked at
}

// placed is one of the files, as it was when SQLite opened it.
type placed struct {
	path string
	info fs.FileInfo
}

// note remembers the files as they are. file is the database as it is open; SQLite has opened the others by then.
func (p *standing) note(path string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	p.files = []placed{{path, info}}
	for _, part := range []string{"-wal", "-shm"} {
		info, err := os.Lstat(path + part)
		if err != nil {
			return err
		}
		p.files = append(p.files, placed{path + part, info})
	}
	return p.look(p.files)
}

// ours reports whether what is at a path, the one with this ending, is what SQLite opened there. Before all are open it is.
func (p *standing) ours(ending string) bool {
	for _, f := range p.files {
		if f.path == p.files[0].path+ending {
			info, err := os.Lstat(f.path)
			return err == nil && os.SameFile(info, f.info)
		}
	}
	return true
}

// look compares the files with what is at their paths now. Links are not followed: one leads to the file by another name,
// and a restart would look for the log beside that.
func (p *standing) look(files []placed) error {
	for i, f := range files {
		info, err := os.Lstat(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return fmt.Errorf("%w: %s was deleted or moved", ErrGone, f.path)
		case err != nil:
			return fmt.Errorf("whether the file is in its place cannot be found out: %w", err)
		case !os.SameFile(info, f.info):
			return fmt.Errorf("%w: there is another file at %s", ErrGone, f.path)
		case i == 0 && info.Size() == 0:
			p.over.Store(true)
			return fmt.Errorf("%w: %s was emptied", ErrGone, f.path)
		case i == 0:
			p.size.Store(info.Size())
		}
	}
	return nil
}

// Standing returns an error unless what is committed is where a restart will find it. It wraps [ErrGone] from when the
// file was found to be gone until the store is opened again, even if the file comes back: whoever had it meanwhile may
// have written to it. It looks at the paths, which takes microseconds.
func (s *Store) Standing() error { return s.stands(s.standing.files) }

// lasts is Standing for a commit. It leaves out the index of the log, without which nothing is lost that was committed.
func (s *Store) lasts() error { return s.stands(s.standing.files[:2]) }

func (s *Store) stands(files []placed) error {
	if gone := s.standing.gone.Load(); gone != nil {
		return *gone
	}
	err := s.standing.look(files)
	if errors.Is(err, ErrGone) {
		return s.lose(err)
	}
	return err
}

// lose makes err the answer to whatever is to be stored from now on, and returns it.
func (s *Store) lose(err error) error {
	if s.standing.gone.CompareAndSwap(nil, &err) {
		s.log.Error("journal/sqlite: the file was taken away while it was open: nothing is acknowledged any more by this process; "+
			sqlitefile.Keep, "file", s.path, "error", err)
	}
	return err
}

// whole returns an error that wraps [ErrGone] if the file or its log became shorter than what SQLite knows to be in them: they
// were written over in place, as cp does with a backup, which changes neither file. The caller has the turn to write.
func (s *Store) whole() error {
	if err := s.wholeFile(); err != nil {
		return err
	}
	return s.wholeLog()
}

// wholeFile goes by what the last look at the file found.
func (s *Store) wholeFile() error {
	size := s.standing.size.Load()
	if size < s.size {
		var pages int64
		if err := s.w.pageCount.query(func(row []driver.Value) error { pages, _ = row[0].(int64); return nil }); err != nil {
			return err
		}
		if pages*s.pageSize >= s.size { // else somebody made it smaller with VACUUM
			s.standing.over.Store(true)
			return s.lose(fmt.Errorf("%w: %s was written over, it has %d bytes of %d", ErrGone, s.path, size, s.size))
		}
	}
	s.size = size
	return nil
}

// Of the log's format (https://www.sqlite.org/fileformat2.html#the_write_ahead_log), in bytes.
const (
	logHeader   = 32
	frameHeader = 24 // before each page
)

// wholeLog has to come before a commit, which makes the log longer.
func (s *Store) wholeLog() error {
	if s.logFile() >= s.logEnd || !s.standing.ours("-wal") {
		return nil
	}
	pages, err := s.logPages()
	if size := s.logFile(); err != nil || size >= s.logEnd {
		return err
	}
	// A checkpoint of somebody else's that cuts the log forgets the pages first.
	if again, err := s.logPages(); err != nil || again != pages {
		return err
	}
	s.standing.over.Store(true)
	return s.lose(fmt.Errorf("%w: %s-wal was written over, and ends before its %d pages do", ErrGone, s.path, pages))
}

// logPages returns how many pages the log has, and notes where the last one ends. The caller has the turn to write.
func (s *Store) logPages() (pages int64, err error) {
	err = s.w.logLength.query(func(row []driver.Value) error { pages, _ = row[1].(int64); return nil })
	s.logEnd = 0
	if pages > 0 {
		s.logEnd = logHeader + pages*(frameHeader+s.pageSize)
	}
	return pages, err
}

// present reports whether the file was in its place when that was last looked at.
func (s *Store) present() bool { return s.standing.gone.Load() == nil }

// rooted opens connections to the file only while it is in its place: what else is there is none of ours, and to open it
// would read our log into it.
type rooted struct {
	driver.Connector
	store *Store
}

func (r rooted) Connect(ctx context.Context) (driver.Conn, error) {
	if err := r.store.Standing(); err != nil {
		return nil, fmt.Errorf("journal/sqlite: %w", err)
	}
	return r.Connector.Connect(ctx)
}

// quoteGlob makes a path a pattern that only it matches.
func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// missLog warns of logs that were put aside, and of a file that was not closed in order and has no log, which then always is there: somebody moved the one
// without the other, or deleted the log. SQLite cannot tell that from a file that was closed.
func (s *Store) missLog() {
	if asides, _ := filepath.Glob(quoteGlob(s.path) + "-wal.[0-9]*"); len(asides) > 0 {
		s.log.Warn("journal/sqlite: write-ahead logs that a gateway put aside are still there, with what it acknowledged last in a file that was taken away: "+
			"bring them together with their file, or delete them", "file", s.path, "logs", asides)
	}
	if _, err := os.Lstat(s.path + "-wal"); !marked(s.file) || !errors.Is(err, fs.ErrNotExist) {
		return
	}
	s.log.Warn("journal/sqlite: the file was not closed in order, and its write-ahead log is not beside it: what was acknowledged last may be missing, "+
		"unless another program has opened the file since and closed it; to look for the log, stop the gateway at once and put it back", "file", s.path)
}

// closeWriter closes the last connection. SQLite then copies the log into the file and deletes it, unless the file is not at its
// path any more. It deletes the log by its path, and is kept from that where the path belongs to somebody else by now.
func (s *Store) closeWriter() error {
	if s.standing.over.Load() {
		return s.setAside() // and the connection ends with the process: to close it would write the log over what is there now
	}
	var errs []error
	if !s.standing.ours("-wal") || !s.standing.ours("-shm") {
		if control, ok := s.w.Conn.(sqlite.FileControl); ok {
			_, err := control.FileControlPersistWAL("main", 1)
			errs = append(errs, err)
		}
	}
	errs = append(errs, s.w.close())
	if !s.present() && !s.standing.ours("") {
		errs = append(errs, s.setAside())
	}
	return errors.Join(errs...)
}

// setAside gives our log another name where another file is at the path of ours, because whoever opens that would read our log into
// it.
func (s *Store) setAside() error {
	log := s.path + "-wal"
	if _, err := os.Lstat(s.path); err != nil || !s.standing.ours("-wal") {
		return nil
	}
	aside := fmt.Sprintf("%s.%d", log, time.Now().UnixNano())
	if err := os.Rename(log, aside); err != nil {
		return err
	}
	s.log.Warn("journal/sqlite: the write-ahead log of the file that was there has another name now: it belongs to no other file", "file", s.path, "log", aside)
	return nil
}
