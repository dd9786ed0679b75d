package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rate is a number of things per second, with a fraction where somebody wants one.
type rate struct{ to *float64 }

// The bounds of a rate: one in some fifteen minutes, and more than one machine does.
const (
	minRate = 0.001
	maxRate = 1_000_000
)

func (v rate) set(s string) error {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= minRate && n <= maxRate) { // which NaN is not
		return fmt.Errorf("%q does not fit; write a number per second from %g to %d, such as 100 or 0.5", s, minRate, maxRate)
	}
	*v.to = n
	return nil
}

func (v rate) show() string { return strconv.FormatFloat(*v.to, 'f', -1, 64) }

// numbers is a list of whole numbers that check accepts.
type numbers struct {
	to     *[]int
	sample string
	check  func(int) error
}

func (v numbers) clear()          { *v.to = nil }
func (v numbers) show() string    { return strings.Join(v.items(), " ") }
func (v numbers) example() string { return v.sample }

func (v numbers) items() []string {
	items := make([]string, len(*v.to))
	for i, n := range *v.to {
		items[i] = strconv.Itoa(n)
	}
	return items
}

func (v numbers) set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is not a number; write one such as %s", s, v.sample)
	}
	if err := v.check(n); err != nil {
		return err
	}
	if slices.Contains(*v.to, n) {
		return fmt.Errorf("%d is there twice; keep one of them", n)
	}
	*v.to = append(*v.to, n)
	return nil
}

// checkPermanent accepts the statuses that can be the last word on an event. The others say that the
// destination is ill or busy, which passes.
func checkPermanent(status int) error {
	switch {
	case status == 408, status == 425, status == 429, status/100 == 5:
		return fmt.Errorf("%d says that the destination cannot now, and is always tried again; remove it", status)
	case status < 300, status > 499:
		return fmt.Errorf("%d cannot end the attempts; write statuses from 300 to 499, such as 400 and 422", status)
	}
	return nil
}

func checkPort(port int) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("%d is not a port; write a number from 1 to 65535", port)
	}
	return nil
}
