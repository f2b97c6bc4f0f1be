// Package human writes numbers, sizes, times and texts for people.
package human

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// Duration shows a duration in its two biggest units: 3s, 4m10s, 2d3h.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute-time.Second/2:
		return d.Round(time.Second).String()
	case d < time.Hour-time.Second/2:
		return units(d.Round(time.Second), time.Minute, "m", time.Second, "s")
	case d < day-time.Minute/2:
		return units(d.Round(time.Minute), time.Hour, "h", time.Minute, "m")
	default:
		return units(d.Round(time.Hour), day, "d", time.Hour, "h")
	}
}

func units(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	if rest := d % big / small; rest > 0 {
		return fmt.Sprintf("%d%s%d%s", d/big, bigName, rest, smallName)
	}
	return fmt.Sprintf("%d%s", d/big, bigName)
}

// Seconds is a duration as JSON has it.
func Seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond)) / float64(time.Second)
}

// Bytes shows a size: 1.2 GiB.
func Bytes(n uint64) string { return humanize.IBytes(n) }

// Count shows a number with separators; at the cap and beyond it means that many or more.
func Count(n, cap int64) string {
	if cap > 0 && n >= cap {
		return humanize.Comma(n) + "+"
	}
	return humanize.Comma(n)
}

// Plural shows a number with its noun.
func Plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return humanize.Comma(n) + " " + noun
}

// Time shows a time in UTC, "" for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// YesNo shows a boolean.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Cut shortens a text to so many characters.
func Cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-3]) + "..."
}
