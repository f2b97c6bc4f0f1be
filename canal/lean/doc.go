// Package lean decodes the wanted columns of a binlog rows event and steps over the others by their length.
//
// A Plan is made once per table definition from the TABLE_MAP event and the list of wanted columns. Decode then walks
// the row images of an event: no reflection, no boxing, one allocation for all the bytes of a row image. What comes out
// is what a SELECT on a connection with character set utf8mb4 and time zone UTC returns: text in UTF-8, times and
// decimals and JSON in the server's own notation.
//
// The package promises three things. It never guesses: a column that it can't read with certainty is refused when the
// plan is made (ErrUnsupported), so that the caller can leave the row to somebody who asks the server. It never trusts:
// truncated or corrupt input is an error (ErrMalformed), never a panic and never a read outside the event. And it never
// aliases: the bytes it returns are copies, good for as long as they are wanted.
//
// Which columns are wanted, and what the rows mean, is the caller's business.
package lean
