package frame

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// Point is a number of a series: at a time, or under a label.
type Point struct {
	At    time.Time `json:"at,omitzero"`
	Label string    `json:"label,omitempty"`
	Value float64   `json:"value"`
}

// Name says what the number is of.
func (p Point) Name() string {
	if p.Label != "" {
		return p.Label
	}
	return p.At.UTC().Format("01-02 15:04")
}

// Chart is a small picture of numbers, with the same in words and in a table beside it.
type Chart struct {
	// Title says what the numbers are, Value what they come to, and Summary what that covers, in a sentence.
	Title   string `json:"title"`
	Value   string `json:"value"`
	Summary string `json:"summary"`
	// Unit is the noun of a number, such as events.
	Unit   string  `json:"unit"`
	Points []Point `json:"points"`
	// Share is set if the numbers are shares of one, and are shown in percent.
	Share bool `json:"share,omitempty"`
	// Bytes is set if the numbers are bytes.
	Bytes bool `json:"bytes,omitempty"`
}

// The size of a chart in units of its own: the page scales it.
const (
	chartWidth  = 240
	chartHeight = 48
	chartMargin = 3 // so that a line at the edge is not cut
)

// ID returns what the chart's table is called in the page.
func (c Chart) ID() string {
	return "table-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(c.Title))
}

// top returns the highest value, at least one, so that nothing is drawn as nothing.
func (c Chart) top() float64 {
	top := 0.0
	for _, p := range c.Points {
		top = max(top, p.Value)
	}
	switch {
	case top > 0:
		return top
	case c.Share:
		return 0.01
	}
	return 1
}

// Text returns a value as the page writes it.
func (c Chart) Text(v float64) string {
	switch {
	case c.Share:
		return Percent(v)
	case c.Bytes:
		return Size(int64(v))
	}
	return Number(v)
}

// x and y are where a point is drawn.
func (c Chart) x(i int) float64 {
	if len(c.Points) < 2 {
		return chartMargin
	}
	return chartMargin + float64(i)*(chartWidth-2*chartMargin)/float64(len(c.Points)-1)
}

func (c Chart) y(v float64) float64 {
	return chartHeight - chartMargin - v/c.top()*(chartHeight-2*chartMargin)
}

// Line draws the numbers as a line over an area. Colours come from the page's style, and no point has one of its own.
func (c Chart) Line() template.HTML {
	if len(c.Points) == 0 {
		return ""
	}
	var line strings.Builder
	for i, p := range c.Points {
		fmt.Fprintf(&line, "%.1f,%.1f ", c.x(i), c.y(p.Value))
	}
	last := len(c.Points) - 1
	area := fmt.Sprintf("%.1f,%d %s%.1f,%d", c.x(0), chartHeight-chartMargin, line.String(), c.x(last), chartHeight-chartMargin)
	return picture(fmt.Sprintf(`<polygon class="area" points="%s"/><polyline class="line" points="%s"/><circle class="dot" cx="%.1f" cy="%.1f" r="2.5"/>`,
		area, strings.TrimSpace(line.String()), c.x(last), c.y(c.Points[last].Value)))
}

// Bars draws each number as a bar.
func (c Chart) Bars() template.HTML {
	if len(c.Points) == 0 {
		return ""
	}
	var bars strings.Builder
	wide := float64(chartWidth-2*chartMargin) / float64(len(c.Points))
	gap := min(2, wide*0.2)
	for i, p := range c.Points {
		y := c.y(p.Value)
		if p.Value > 0 {
			y = min(y, chartHeight-chartMargin-1) // what is there is seen
		}
		fmt.Fprintf(&bars, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
			chartMargin+float64(i)*wide+gap/2, y, max(wide-gap, 0.5), chartHeight-chartMargin-y)
	}
	return picture(bars.String() + fmt.Sprintf(`<line class="base" x1="%d" y1="%d" x2="%d" y2="%[2]d"/>`, chartMargin, chartHeight-chartMargin, chartWidth-chartMargin))
}

// picture is the element around what is drawn, which consists of numbers and our own words. Who does not see it reads the
// figure's summary and its table.
func picture(inner string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="chart" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true" focusable="false">%s</svg>`, chartWidth, chartHeight, inner))
}
