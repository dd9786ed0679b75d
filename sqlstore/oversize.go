package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/pgerror"
)

// oversize is how a database says that it takes no response as large as one.
type oversize struct {
	// fits returns an error that wraps [hookonce.ErrResponseTooLarge] if that is known before r is sent.
	fits func(ctx context.Context, q querier, r hookonce.Response) error
	// told reports whether an error says so afterwards.
	told func(error) bool
}

func tooLarge(n, most int64) error {
	return fmt.Errorf("%w: the database takes at most %d bytes, and this needs %d", hookonce.ErrResponseTooLarge, most, n)
}

var oversizeSQLite = oversize{
	fits: func(context.Context, querier, hookonce.Response) error { return nil },
	told: func(err error) bool { return sqliteCode(err) == sqliteTooBig },
}

// maxField is what a value in Postgres can hold, less what else is in the message that brings it.
// https://www.postgresql.org/docs/current/limits.html
const maxField = 1<<30 - 1<<16

var oversizePostgres = oversize{
	fits: func(_ context.Context, _ querier, r hookonce.Response) error {
		if n := int64(len(r.Body)); n > maxField {
			return tooLarge(n, maxField)
		}
		return nil
	},
	told: func(err error) bool { return strings.HasPrefix(pgerror.State(err), "54") }, // program_limit_exceeded
}

var oversizeMySQL = oversize{fits: fitsMySQL, told: toldMySQL}

// smallPacket is below what any server is set to, so that most responses cost no question.
const smallPacket = 16 << 10

// fitsMySQL asks for the server's max_allowed_packet before a response is sent that may be above it. Such a one is
// answered with an error at best. When the connection is cut while it is written, which is so with larger ones, it
// looks like a server that is away, for ever.
// https://dev.mysql.com/doc/refman/8.0/en/packet-too-large.html
func fitsMySQL(ctx context.Context, q querier, r hookonce.Response) error {
	n := packet(r)
	if n <= smallPacket {
		return nil
	}
	var most int64
	_, err := one(ctx, q, statement{text: "SELECT @@max_allowed_packet"}, nil, &most)
	if err == nil && n > most {
		err = fmt.Errorf("%w (max_allowed_packet)", tooLarge(n, most))
	}
	return err
}

// packet is how many bytes it takes to send r, with what has to be escaped where it becomes a part of the statement.
func packet(r hookonce.Response) int64 {
	n := 1024 // the statement and the reference
	for _, b := range [][]byte{[]byte(header.Encode(r.Header)), r.Body} {
		n += len(b)
		for _, escaped := range []byte("\x00\n\r\x1a'\"\\") {
			n += bytes.Count(b, []byte{escaped})
		}
	}
	return int64(n)
}

func toldMySQL(err error) bool {
	switch mysqlNumber(err) {
	case 1153, // ER_NET_PACKET_TOO_LARGE
		1406: // ER_DATA_TOO_LONG
		return true
	case 1105: // ER_UNKNOWN_ERROR, for a parameter that was sent in pieces
		return strings.Contains(err.Error(), "max_allowed_packet")
	}
	return err != nil && strings.Contains(err.Error(), "packet for query is too large") // ErrPktTooLarge of the driver
}
