package spec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Marshal returns a specification in YAML, to copy and change. [Parse] reads it, unless it needs code
// of the catalogue.
func Marshal(s Spec) ([]byte, error) {
	text, err := marshal(s, blocks(s))
	if err != nil {
		return nil, fmt.Errorf("the specification %s has no form in YAML: %w", s.Name, err)
	}
	return text, nil
}

func marshal(s Spec, blocks bool) ([]byte, error) {
	return yaml.MarshalWithOptions(s,
		yaml.UseLiteralStyleIfMultiline(blocks),
		yaml.IndentSequence(true),
		yaml.CustomMarshaler(func(d time.Duration) ([]byte, error) { return []byte(FormatDuration(d)), nil }),
	)
}

// blocks reports whether texts of several lines can be written as such. White space around their lines
// would be lost.
func blocks(s Spec) bool {
	s = s.uncoded()
	block, err := marshal(s, true)
	if err != nil {
		return false
	}
	again, err := Parse(block)
	if err != nil {
		return false
	}
	want, _ := marshal(s, false)
	got, err := marshal(again, false)
	return err == nil && bytes.Equal(want, got)
}

// uncoded returns a copy without what names code of the catalogue.
func (s Spec) uncoded() Spec {
	s.Verify, s.Handshakes = slices.Clone(s.Verify), slices.Clone(s.Handshakes)
	for i := range s.Verify {
		if v := &s.Verify[i]; v.Kind == Code {
			v.Kind, v.Scheme = "", nil
		}
	}
	for i := range s.Handshakes {
		if h := &s.Handshakes[i]; h.Code != nil && h.Code.Kind == Code {
			h.Code = nil
		}
	}
	return s
}

const day = 24 * time.Hour

// parseDuration extends [time.ParseDuration] by a leading number of whole days.
func parseDuration(text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 15)
	if err != nil || rest == "" {
		return time.Duration(n) * day, err
	}
	part, err := time.ParseDuration(rest)
	if err == nil && (part < 0 || part >= day) {
		err = errors.New("the part after the days is not within one day")
	}
	return time.Duration(n)*day + part, err
}

// FormatDuration writes a duration the way people do, as [Parse] reads it: 5m and not 5m0s, 3d and not
// 72h0m0s.
func FormatDuration(d time.Duration) string {
	if d > 2*day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
