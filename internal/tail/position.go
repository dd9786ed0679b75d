package tail

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/hookonce/hookonce/internal/journal"
)

// position says up to where events were told. A gateway commits one batch after the other, so what is visible of its events
// is all up to the last: one identifier for each gateway says which were told. What is below floor was, whoever wrote it.
type position struct {
	floor int64
	last  map[int]int64 // by writer: the last from floor on
	// count is how many events from floor on were told. More of them in the store came late: their gateway did not learn
	// what became of their commit. unknown: nobody counted.
	count int
}

const unknown = -1

// pass takes an event into what was told.
func (p *position) pass(id int64) {
	w := journal.IDWriter(id)
	p.last[w] = max(p.last[w], id)
	p.count++
}

// told reports whether an event was told.
func (p *position) told(id int64) bool { return id < p.floor || id <= p.last[journal.IDWriter(id)] }

// forget raises floor, above which so many remain.
func (p *position) forget(floor int64, count int) {
	p.floor, p.count = max(p.floor, floor), count
	maps.DeleteFunc(p.last, func(_ int, id int64) bool { return id < p.floor })
}

// maxWriters is how many gateways are told apart in the text of a position: the last. Events of others would be told again.
const maxWriters = 64

// ErrPosition says that a text is not the position of a tail.
var ErrPosition = errors.New("tail: this is not a position that a tail gave")

// text writes the position for whoever is told it.
func (p *position) text() string {
	b := binary.AppendUvarint(nil, uint64(p.floor))
	b = binary.AppendVarint(b, int64(p.count))
	ids := slices.Sorted(maps.Values(p.last))
	for _, id := range ids[max(0, len(ids)-maxWriters):] {
		b = binary.AppendUvarint(b, uint64(id-p.floor))
	}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// parse reads a position. The sum recognises one that was cut; it need prove nothing, because a position grants nothing.
func parse(text string) (*position, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 4 || crc32.ChecksumIEEE(b[:len(b)-4]) != binary.BigEndian.Uint32(b[len(b)-4:]) {
		return nil, ErrPosition
	}
	b = b[:len(b)-4]
	next := func() (n uint64) {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<63-1 {
			err = ErrPosition
			return 0
		}
		b = b[size:]
		return n
	}
	p := &position{floor: int64(next()), last: map[int]int64{}}
	count, size := binary.Varint(b)
	if size <= 0 {
		return nil, ErrPosition
	}
	p.count, b = int(count), b[size:]
	for len(b) > 0 && err == nil {
		id := p.floor + int64(next())
		if id < p.floor || len(p.last) == maxWriters {
			return nil, ErrPosition
		}
		p.last[journal.IDWriter(id)] = id
	}
	return p, err
}
