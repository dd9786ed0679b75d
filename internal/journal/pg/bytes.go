package pg

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// byteaArray is pgx's codec of bytea[] with a shortcut for what a batch of bodies is: [][]byte in
// binary. The general way grows its buffer element by element, and so allocates several times what
// it sends; this one asks for the room at once.
type byteaArray struct{ *pgtype.ArrayCodec }

// registerBytes makes a connection use [byteaArray].
func registerBytes(_ context.Context, conn *pgx.Conn) error {
	bytea, _ := conn.TypeMap().TypeForOID(pgtype.ByteaOID)
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "_bytea", OID: pgtype.ByteaArrayOID,
		Codec: byteaArray{&pgtype.ArrayCodec{ElementType: bytea}},
	})
	return nil
}

// PlanEncode implements [pgtype.Codec].
func (c byteaArray) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.([][]byte); ok && format == pgtype.BinaryFormatCode {
		return encodeBytes{}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// encodeBytes encodes a [][]byte, whose nil elements are NULL, as an array of one dimension.
type encodeBytes struct{}

// Encode implements [pgtype.EncodePlan].
func (encodeBytes) Encode(value any, buf []byte) ([]byte, error) {
	elements := value.([][]byte)
	if elements == nil {
		return nil, nil
	}
	const header = 5 * 4
	size, nulls := header, uint32(0)
	for _, e := range elements {
		size += 4 + len(e)
		if e == nil {
			nulls = 1
		}
	}
	buf = slices.Grow(buf, size)
	dimensions := []uint32{uint32(len(elements)), 1} // how many, and the number of the first
	if len(elements) == 0 {
		dimensions = nil
	}
	for _, n := range append([]uint32{uint32(len(dimensions) / 2), nulls, pgtype.ByteaOID}, dimensions...) {
		buf = binary.BigEndian.AppendUint32(buf, n)
	}
	for _, e := range elements {
		n := int32(len(e))
		if e == nil {
			n = -1
		}
		buf = append(binary.BigEndian.AppendUint32(buf, uint32(n)), e...)
	}
	return buf, nil
}
