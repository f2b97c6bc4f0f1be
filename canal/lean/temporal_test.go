package lean

import (
	"encoding/hex"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/stretchr/testify/require"
)

// The server tests compare many more values; these are the ones that were hard to get right, and the types that no
// server of today writes.
func TestTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tp     byte
		digits int
		bytes  string
		want   string
	}{
		{mysql.MYSQL_TYPE_DATE, 0, "000000", "0000-00-00"},
		{mysql.MYSQL_TYPE_DATE, 0, "9f1f4e", "9999-12-31"},
		{mysql.MYSQL_TYPE_TIME2, 0, "800000", "00:00:00"},
		{mysql.MYSQL_TYPE_TIME2, 2, "7fffffff", "-00:00:00.01"},
		{mysql.MYSQL_TYPE_TIME2, 2, "7fffff00", "-00:00:01.00"},
		{mysql.MYSQL_TYPE_TIME2, 1, "7ffffef6", "-00:00:01.1"},
		{mysql.MYSQL_TYPE_TIME2, 6, "7fffffffffff", "-00:00:00.000001"},
		{mysql.MYSQL_TYPE_TIME2, 3, "800000000a", "00:00:00.001"},
		{mysql.MYSQL_TYPE_DATETIME2, 0, "8000000000", "0000-00-00 00:00:00"},
		{mysql.MYSQL_TYPE_DATETIME2, 6, "99b2791083075bcd", "2024-01-28 17:02:03.482253"},
		{mysql.MYSQL_TYPE_TIMESTAMP2, 3, "0000000000" + "00", "0000-00-00 00:00:00.000"},
		{mysql.MYSQL_TYPE_TIMESTAMP2, 0, "ffffffff", "2106-02-07 06:28:15"},
		{mysql.MYSQL_TYPE_TIMESTAMP, 0, "ffffff7f", "2038-01-19 03:14:07"},
		{mysql.MYSQL_TYPE_TIMESTAMP, 0, "00000000", "0000-00-00 00:00:00"},
		{mysql.MYSQL_TYPE_TIME, 0, "40e201", "12:34:56"},
		{mysql.MYSQL_TYPE_TIME, 0, "c01dfe", "-12:34:56"},
		{mysql.MYSQL_TYPE_DATETIME, 0, "0000000000000000", "0000-00-00 00:00:00"},
		{mysql.MYSQL_TYPE_DATETIME, 0, "457c178468120000", "2024-01-02 03:04:05"},
	} {
		b, err := hex.DecodeString(c.bytes)
		require.NoError(t, err)
		got, err := appendTemporal(nil, b, c.tp, c.digits)
		require.NoError(t, err)
		require.Equal(t, c.want, string(got), c.bytes)
	}
}

func TestTimesThatNoServerWrites(t *testing.T) {
	t.Parallel()
	for tp, bytes := range map[byte]string{mysql.MYSQL_TYPE_TIMESTAMP2: "00000001ffffff", mysql.MYSQL_TYPE_DATETIME2: "7fffffffff000000", mysql.MYSQL_TYPE_TIME2: "8000000f4240"} {
		b, err := hex.DecodeString(bytes)
		require.NoError(t, err)
		_, err = appendTemporal(nil, b, tp, 6)
		require.ErrorIs(t, err, ErrMalformed, tp)
	}
}

func TestDecimals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		precision, scale int
		bytes, want      string
	}{
		{1, 0, "80", "0"},
		{2, 2, "81", "0.01"},
		{2, 2, "7e", "-0.01"},
		{10, 2, "8000000000", "0.00"},
		{10, 2, "80000c2238", "3106.56"},
		{14, 4, "810dfb38d204d2", "1234567890.1234"},
		{14, 4, "7ef204c72dfb2d", "-1234567890.1234"},
		{20, 0, "8b000000000000000b", "11000000000000000011"},
	} {
		b, err := hex.DecodeString(c.bytes)
		require.NoError(t, err)
		got, err := appendDecimal(nil, b, c.precision, c.scale)
		require.NoError(t, err)
		require.Equal(t, c.want, string(got), c.bytes)
	}
	_, err := appendDecimal(nil, []byte{0x80}, 10, 2)
	require.ErrorIs(t, err, ErrMalformed)
}
