package lean

import "sort"

// collationRange says that the ids from first to last belong to a charset.
type collationRange struct {
	first, last uint64
	charset     string
}

// CollationCharset names the charset of a collation by its id, as a TABLE_MAP event tells it. It knows the ids of MySQL
// 9.7 and of MariaDB 10.11, uca1400 collations included; the two servers use no id for different charsets. The table is
// made by internal/gentables from information_schema.collations and collation_character_set_applicability.
func CollationCharset(id uint64) (string, bool) {
	i := sort.Search(len(collations), func(i int) bool { return collations[i].last >= id })
	if i == len(collations) || id < collations[i].first {
		return "", false
	}
	return collations[i].charset, true
}
