package lean_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/lean"
)

// All codes of all charsets are compared with the servers in TestCharsetsAreTheServers.

func TestCharsets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ charset, text, want string }{
		{"utf8mb4", "a😀", "a😀"},
		{"UTF8MB3", "aé", "aé"},
		{"binary", "\xff\x00", "\xff\x00"},
		{"ascii", "plain", "plain"},
		{"latin1", "\x80\x81\xe9", "€\u0081é"}, // cp1252, and not as browsers do
		{"latin2", "\xb1", "ą"},
		{"swe7", "[\\]", "ÄÖÅ"}, // no ASCII
		{"cp1251", "\xc6", "Ж"},
		{"cp1251", "\x98", "?"}, // no character
		{"gbk", "a\xc4\xe3b", "a你b"},
		{"gb18030", "\x81\x30\x81\x30\x90\x30\x81\x30\xe3\x32\x9a\x35", "\u0080\U00010000\U0010ffff"},
		{"big5", "\xa7\x41", "你"},
		{"sjis", "\x83\x5c\x5c\xb1", "ソ\\ｱ"},
		{"cp932", "\x81\x60", "～"},
		{"sjis", "\x81\x60", "〜"},
		{"ujis", "\x8f\xb0\xa1\x8e\xb1\xa4\xa2", "丂ｱあ"},
		{"euckr", "\xc7\xd1", "한"},
		{"ucs2", "\x00a\x20\xac", "a€"},
		{"utf16", "\x00a\xd8\x3d\xde\x00", "a😀"},
		{"utf16le", "a\x00\x3d\xd8\x00\xde", "a😀"},
		{"utf32", "\x00\x00\x00a\x00\x01\xf6\x00", "a😀"},
		{"gbk", "", ""},
	} {
		got, err := lean.ToUTF8(c.charset, []byte(c.text))
		require.NoError(t, err, c)
		require.Equal(t, c.want, string(got), c.charset)
	}
}

func TestTextThatIsNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ charset, text string }{
		{"gbk", "\xc4"},
		{"gbk", "\xc4\x20"},
		{"gbk", "\xff\xff"},
		{"sjis", "\x83"},
		{"ujis", "\x8f\xb0"},
		{"ujis", "\xa4 "},
		{"gb18030", "\x81\x30\x81"},
		{"gb18030", "\x81\x30\x20\x30"},
		{"gb18030", "\xff\x30\x81\x30"},
		{"gb18030", "\x80"},
		{"ucs2", "a"},
		{"ucs2", "\xd8\x00"},
		{"utf16", "a"},
		{"utf16", "\xd8\x3d"},
		{"utf16", "\xd8\x3d\x00a"},
		{"utf16le", "\x00\xdc\x00\xdc"},
		{"utf32", "\x00\x00\x00"},
		{"utf32", "\x00\x11\x00\x00"},
		{"utf32", "\x00\x00\xd8\x00"},
	} {
		_, err := lean.ToUTF8(c.charset, []byte(c.text))
		require.ErrorIs(t, err, lean.ErrMalformed, "%s %x", c.charset, c.text)
	}
}

func TestKnownCharsets(t *testing.T) {
	t.Parallel()
	require.True(t, lean.KnownCharset("utf8mb4"))
	require.True(t, lean.KnownCharset("GBK"))
	require.False(t, lean.KnownCharset(""))
	require.False(t, lean.KnownCharset("filename"))
}

func TestCollations(t *testing.T) {
	t.Parallel()
	for id, want := range map[uint64]string{8: "latin1", 33: "utf8mb3", 63: "binary", 255: "utf8mb4", 28: "gbk", 248: "gb18030", 2308: "utf8mb4"} {
		got, ok := lean.CollationCharset(id)
		require.True(t, ok, id)
		require.Equal(t, want, got, id)
	}
	for _, id := range []uint64{0, 500, 1 << 40} {
		_, ok := lean.CollationCharset(id)
		require.False(t, ok, id)
	}
}
