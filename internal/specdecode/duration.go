package specdecode

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

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
