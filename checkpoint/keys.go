package checkpoint

import (
	"fmt"
	"strings"
	"unicode"
)

// keys are the names of what a source has in Redis.
type keys struct{ checkpoint, epoch, history, leader string }

// keys returns the source's key names. In a cluster the braces make Redis hash only what they enclose, so that all keys
// of the source lie in one slot and a script may use them together.
func (s *Store) keys(source string) (keys, error) {
	if err := checkSource(source); err != nil {
		return keys{}, err
	}
	base := s.cfg.Prefix + source
	if s.target.mode == modeCluster && !hasTag(s.cfg.Prefix) {
		base = s.cfg.Prefix + "{" + source + "}"
	}
	return keys{
		checkpoint: base + ":checkpoint",
		epoch:      base + ":epoch",
		history:    base + ":history",
		leader:     base + ":leader",
	}, nil
}

// hasTag reports whether Redis Cluster finds a hash tag: the first brace and, somewhere behind it, one that closes a
// text which isn't empty.
func hasTag(prefix string) bool {
	_, rest, found := strings.Cut(prefix, "{")
	if !found {
		return false
	}
	return strings.IndexByte(rest, '}') > 0
}

// checkSource refuses names that would make keys which nobody can type or which hash apart from each other.
func checkSource(source string) error {
	odd := func(r rune) bool { return r == '{' || r == '}' || unicode.IsSpace(r) || unicode.IsControl(r) }
	if source == "" || strings.IndexFunc(source, odd) >= 0 {
		return fmt.Errorf("source name %q can't be part of a redis key: use letters, digits, dots, dashes and underscores", source)
	}
	return nil
}
