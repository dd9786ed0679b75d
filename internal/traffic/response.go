package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Limits of what a server may answer.
const (
	// MaxHead is the longest status line with header fields, in bytes.
	MaxHead = 64 << 10
	// MaxBody is the longest body, in bytes.
	MaxBody = 8 << 20
)

// ErrMalformed is wrapped by every error about an answer that is not HTTP/1.1.
var ErrMalformed = errors.New("the answer is not valid HTTP/1.1")

// Response is one answer. Its slices point into the buffer that it was parsed from.
type Response struct {
	// Status is the status code, such as 200.
	Status int
	// Header holds the field lines, each ended by CRLF or LF.
	Header []byte
	// Body is the body with any chunked coding removed.
	Body []byte
	// Close reports that the connection cannot carry another request.
	Close bool
}

// Field returns the value of the first header field with that name, without surrounding blanks, and
// nil if there is none. Names are compared without regard to case.
func (r Response) Field(name string) []byte { return field(r.Header, name) }

func field(header []byte, name string) []byte {
	for len(header) > 0 {
		var line []byte
		line, header, _ = bytes.Cut(header, []byte("\n"))
		if len(line) <= len(name) || line[len(name)] != ':' {
			continue
		}
		if bytes.EqualFold(line[:len(name)], []byte(name)) {
			return bytes.TrimSpace(line[len(name)+1:])
		}
	}
	return nil
}

// Parse reads the first answer in buf and returns it with the number of bytes that it took. Zero
// bytes without an error mean that the answer is not complete yet. At end of input, eof is true: a
// body without a stated length then ends there, and anything else that is incomplete is an error.
// Interim answers (1xx) are skipped. Errors wrap [ErrMalformed].
func Parse(buf []byte, eof bool) (Response, int, error) {
	used := 0
	for {
		r, n, err := parseOne(buf[used:], eof)
		if err != nil || n == 0 {
			if err == nil && eof {
				err = malformed("the connection ended after %d bytes of an answer", len(buf)-used)
			}
			return Response{}, 0, err
		}
		used += n
		if r.Status >= 200 {
			return r, used, nil
		}
	}
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

func parseOne(buf []byte, eof bool) (r Response, n int, err error) {
	head, ok := headLen(buf)
	if !ok {
		if len(buf) > MaxHead {
			return r, 0, malformed("the header is longer than %d bytes", MaxHead)
		}
		return r, 0, nil
	}
	line, header, _ := bytes.Cut(buf[:head], []byte("\n"))
	if r.Status, r.Close, err = statusLine(line); err != nil {
		return r, 0, err
	}
	r.Header = header
	if c := field(header, "Connection"); c != nil {
		r.Close = bytes.EqualFold(c, []byte("close")) || r.Close && !bytes.EqualFold(c, []byte("keep-alive"))
	}
	body, took, done, err := r.body(buf[head:], eof)
	if err != nil || !done {
		return r, 0, err
	}
	r.Body = body
	return r, head + took, nil
}

// headLen returns the length of the header up to and including the blank line.
func headLen(buf []byte) (int, bool) {
	for at := 0; ; {
		nl := bytes.IndexByte(buf[at:], '\n')
		if nl < 0 {
			return 0, false
		}
		line := buf[at : at+nl]
		if at > 0 && (len(line) == 0 || len(line) == 1 && line[0] == '\r') {
			return at + nl + 1, at+nl+1 <= MaxHead
		}
		at += nl + 1
	}
}

// statusLine reads "HTTP/1.1 200 OK". Version 1.0 closes unless it says otherwise.
func statusLine(line []byte) (status int, closes bool, err error) {
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[8] != ' ' {
		return 0, false, malformed("it starts with %q", line[:min(len(line), 40)])
	}
	if len(line) > 12 && line[12] != ' ' && line[12] != '\r' {
		return 0, false, malformed("it starts with %q", line[:min(len(line), 40)])
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return 0, false, malformed("the status is %q", line[9:12])
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 {
		return 0, false, malformed("the status is %d", status)
	}
	return status, line[7] == '0', nil
}

// body returns the body at the start of rest and how many bytes it took there.
func (r *Response) body(rest []byte, eof bool) (body []byte, took int, done bool, err error) {
	if r.Status < 200 || r.Status == 204 || r.Status == 304 {
		return nil, 0, true, nil
	}
	if te := field(r.Header, "Transfer-Encoding"); te != nil {
		if !bytes.EqualFold(te, []byte("chunked")) {
			return nil, 0, false, malformed("unknown Transfer-Encoding %q", te)
		}
		return chunked(rest)
	}
	if cl := field(r.Header, "Content-Length"); cl != nil {
		n, err := strconv.ParseUint(string(cl), 10, 31)
		switch {
		case err != nil:
			return nil, 0, false, malformed("the Content-Length is %q", cl)
		case n > MaxBody:
			return nil, 0, false, malformed("the body is longer than %d bytes", MaxBody)
		case int(n) > len(rest):
			return nil, 0, false, nil
		}
		return rest[:n], int(n), true, nil
	}
	r.Close = true // without a length the body ends with the connection
	if len(rest) > MaxBody {
		return nil, 0, false, malformed("the body is longer than %d bytes", MaxBody)
	}
	return rest, len(rest), eof, nil
}

// chunked decodes a chunked body. Trailer fields are dropped.
func chunked(rest []byte) (body []byte, took int, done bool, err error) {
	for {
		nl := bytes.IndexByte(rest[took:], '\n')
		if nl < 0 {
			if len(rest)-took > MaxHead {
				return nil, 0, false, malformed("a chunk's size line is too long")
			}
			return nil, 0, false, nil
		}
		digits, _, _ := bytes.Cut(rest[took:took+nl], []byte(";"))
		size, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 31)
		if err != nil {
			return nil, 0, false, malformed("a chunk's size is %q", digits[:min(len(digits), 40)])
		}
		took += nl + 1
		if size == 0 {
			return trailer(body, rest, took)
		}
		if len(body)+int(size) > MaxBody {
			return nil, 0, false, malformed("the body is longer than %d bytes", MaxBody)
		}
		end, ok, err := chunkEnd(rest, took+int(size))
		if err != nil || !ok {
			return nil, 0, false, err
		}
		body = append(body, rest[took:took+int(size)]...)
		took = end
	}
}

// chunkEnd expects the line break that ends a chunk at the given offset.
func chunkEnd(rest []byte, at int) (end int, ok bool, err error) {
	if at < len(rest) && rest[at] == '\r' {
		at++
	}
	switch {
	case at >= len(rest):
		return 0, false, nil
	case rest[at] != '\n':
		return 0, false, malformed("a chunk is longer than it says")
	}
	return at + 1, true, nil
}

// trailer skips the field lines after the last chunk up to the blank line.
func trailer(body, rest []byte, took int) ([]byte, int, bool, error) {
	for start := took; ; {
		nl := bytes.IndexByte(rest[took:], '\n')
		if nl < 0 {
			if len(rest)-start > MaxHead {
				return nil, 0, false, malformed("the trailer is longer than %d bytes", MaxHead)
			}
			return nil, 0, false, nil
		}
		blank := len(bytes.TrimSpace(rest[took:took+nl])) == 0
		took += nl + 1
		if blank {
			return body, took, true, nil
		}
	}
}
