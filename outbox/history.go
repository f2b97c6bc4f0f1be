package outbox

import "strings"

// historyPlace stands for the table's name in the name of its history.
const historyPlace = "{table}"

// HistoryName returns the history of a table by the configured template, such as "{table}_history". A history is in the
// database of its table.
func HistoryName(template string, table Table) Table {
	return Table{Database: table.Database, Name: strings.ReplaceAll(template, historyPlace, table.Name)}
}

// HistoryBase returns the name of the table whose history a table of this name would be, and whether there can be one.
// With fold, names that differ in case only are the same.
func HistoryBase(template, name string, fold bool) (string, bool) {
	before, after, ok := strings.Cut(template, historyPlace)
	if !ok || len(name) <= len(before)+len(after) {
		return "", false
	}
	head, tail := name[:len(before)], name[len(name)-len(after):]
	if head != before || tail != after {
		if !fold || !strings.EqualFold(head, before) || !strings.EqualFold(tail, after) {
			return "", false
		}
	}
	return name[len(before) : len(name)-len(after)], true
}
