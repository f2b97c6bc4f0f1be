package config

import (
	"fmt"
	"slices"
	"strings"

	"example.com/outbox-relay/outbox"
)

// archive finds what can't be archived into. A table that a regular expression matches is known to the server only; the
// relay leaves histories out of those by itself.
func (k checker) archive(c *Config) {
	k.template(c.Archive.Table, "table", "archive.table")
	if strings.Count(c.Archive.Table, "{table}") != 1 || c.Archive.Table == "{table}" {
		k.add("archive.table", "%smust be another table than the one archived; write {table}_history", k.show("archive.table", c.Archive.Table))
		return
	}
	if strings.ContainsAny(c.Archive.Table, "./`") {
		k.add("archive.table", "%smust be a table's name: the history is in the same database", k.show("archive.table", c.Archive.Table))
		return
	}
	for i, s := range c.Sources {
		at := sourceKey
		if k.d.many {
			at = fmt.Sprintf("%s[%d]", sourcesKey, i)
		}
		for j, t := range s.Tables {
			database, name, _ := strings.Cut(t, ".")
			base, ok := outbox.HistoryBase(c.Archive.Table, name, true)
			if c.Archive.Enabled && ok && slices.Contains(s.Tables, database+"."+base) {
				key := fmt.Sprintf("%s.tables[%d]", at, j)
				k.add(key, "%sis what archive.table calls the history of %s.%s; remove it, or choose another archive.table", k.show(key, t), database, base)
			}
		}
	}
}
