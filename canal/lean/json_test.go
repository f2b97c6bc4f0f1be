package lean_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/lean"
)

// What the server prints for whole documents is compared in TestJSONIsTheServers.

func TestDoubles(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{
		0: "0.0", math.Copysign(0, -1): "-0.0", 1: "1.0", -1.5: "-1.5", 0.1: "0.1", 100.25: "100.25", 1e14: "100000000000000.0",
		1e15: "1e15", 999999999999999: "999999999999999.0", 1.25e15: "1.25e15", 3578680347992400.5: "3578680347992400.5",
		1e-14: "0.00000000000001", 1e-15: "0.000000000000001", 1e-16: "1e-16", 1.5e-17: "1.5e-17", 5e-324: "5e-324", math.MaxFloat64: "1.7976931348623157e308",
	} {
		b := binary.LittleEndian.AppendUint64([]byte{0x0b}, math.Float64bits(f))
		got, err := lean.JSONText(b)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

// object is {"a": 7, "b": "x"} in binary JSON.
const object = "\x00" + "\x02\x00\x16\x00" + "\x12\x00\x01\x00" + "\x13\x00\x01\x00" + "\x05\x07\x00" + "\x0c\x14\x00" + "ab" + "\x01x"

func TestJSONObject(t *testing.T) {
	t.Parallel()
	got, err := lean.JSONText([]byte(object))
	require.NoError(t, err)
	require.JSONEq(t, `{"a": 7, "b": "x"}`, string(got))
	got, err = lean.JSONText(nil)
	require.NoError(t, err)
	require.Equal(t, "null", string(got))
}

func TestBrokenJSON(t *testing.T) {
	t.Parallel()
	for n := 1; n < len(object); n++ {
		_, err := lean.JSONText([]byte(object[:n]))
		require.ErrorIs(t, err, lean.ErrMalformed, "cut at %d", n)
	}
	for _, b := range []string{
		"\x0d", "\x04", "\x04\x03", "\x05\x01", "\x0b\x00", "\x0c\xff\xff\xff\xff\xff", "\x0c\x05abc", "\x0f", "\x0f\xf6\x01\x02", "\x0f\xf6\x02\x00\x00", "\x0f\x0a\x01x",
		"\x0b\x00\x00\x00\x00\x00\x00\xf0\x7f", // infinity
		"\x02\xff\xff\xff\xff",                 // more elements than bytes
		"\x03\xff\xff\xff\xff\xff\xff\xff\xff",
		"\x02\x01\x00\x07\x00\x02\x00\x00",                         // an array that holds itself
		strings.Replace(object, "\x12\x00\x01", "\x00\x00\x01", 1), // a key within the header
	} {
		_, err := lean.JSONText([]byte(b))
		require.ErrorIs(t, err, lean.ErrMalformed, "%q", b)
	}
}

// TestJSONBombs: documents whose parts are used many times print more than they have bytes, and do not end.
func TestJSONBombs(t *testing.T) {
	t.Parallel()
	// Arrays of two elements, each the next array: 2^60 values in 60 * 10 bytes.
	var b []byte
	const levels, size = 60, 10
	for i := range levels {
		left := (levels - i) * size
		b = binary.LittleEndian.AppendUint16(b, 2)
		b = binary.LittleEndian.AppendUint16(b, uint16(left))
		for range 2 {
			if i == levels-1 {
				b = append(b, 0x04, 0, 0)
				continue
			}
			b = append(b, 0x02, size, 0)
		}
	}
	_, err := lean.JSONText(append([]byte{0x02}, b...))
	require.ErrorIs(t, err, lean.ErrMalformed)
}

// TestDeepJSON: MySQL allows 100 levels.
func TestDeepJSON(t *testing.T) {
	t.Parallel()
	nested := func(levels int) []byte {
		var b []byte
		for i := range levels {
			left := (levels-i)*7 - 3
			if i == levels-1 {
				return append(b, 0, 0, 4, 0)
			}
			b = binary.LittleEndian.AppendUint16(b, 1)
			b = binary.LittleEndian.AppendUint16(b, uint16(left))
			b = append(b, 0x02, 7, 0)
		}
		return b
	}
	got, err := lean.JSONText(append([]byte{0x02}, nested(100)...))
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("[", 100)+strings.Repeat("]", 100), string(got))
	_, err = lean.JSONText(append([]byte{0x02}, nested(101)...))
	require.ErrorIs(t, err, lean.ErrMalformed)
}

func TestOpaqueJSON(t *testing.T) {
	t.Parallel()
	packed := func(tp byte, n int64) []byte {
		return binary.LittleEndian.AppendUint64([]byte{0x0f, tp, 8}, uint64(n))
	}
	for want, b := range map[string][]byte{
		`"-00:00:00.000001"`:           packed(mysql.MYSQL_TYPE_TIME, -1),
		`"00:00:00.000000"`:            packed(mysql.MYSQL_TYPE_TIME, 0),
		`"0000-00-00"`:                 packed(mysql.MYSQL_TYPE_DATE, 0),
		`"0000-00-00 00:00:00.000000"`: packed(mysql.MYSQL_TYPE_DATETIME, 0),
		`-1.50`:                        {0x0f, mysql.MYSQL_TYPE_NEWDECIMAL, 4, 3, 2, 0x7e, 0xcd},
		`"base64:type15:AQI="`:         {0x0f, mysql.MYSQL_TYPE_VARCHAR, 2, 1, 2},
	} {
		got, err := lean.JSONText(b)
		require.NoError(t, err, want)
		require.Equal(t, want, string(got))
	}
	_, err := lean.JSONText(packed(mysql.MYSQL_TYPE_DATETIME, math.MinInt64))
	require.NoError(t, err)
}
