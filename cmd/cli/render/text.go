package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Duration shows a duration in its two biggest units: 3s, 4m10s, 2d3h.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	switch day := 24 * time.Hour; {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return strings.TrimSuffix(d.Round(time.Second).String(), "0s")
	case d < day:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	default:
		hours := int(d.Round(time.Hour) / time.Hour)
		return fmt.Sprintf("%dd%dh", hours/24, hours%24)
	}
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

// ID shows the number of a row.
func ID(id uint64) string { return strconv.FormatUint(id, 10) }
