//go:build !unit

package lean_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"example.com/outbox-relay/test/rig"
)

// columnType is a type for random tables: values are SQL expressions. A refused type can't be wanted.
type columnType struct {
	ddl     string
	values  []string
	make    func(rnd *rand.Rand) string
	refused bool
}

// value returns a random value: the first rows have the first values, so that all edge cases come.
func (c *columnType) value(rnd *rand.Rand, row int) string {
	if rnd.IntN(8) == 0 && c.values[0] != "DEFAULT" {
		return "NULL"
	}
	if c.make != nil && (len(c.values) == 0 || rnd.IntN(2) == 0) {
		return c.make(rnd)
	}
	return c.values[(row+rnd.IntN(2))%len(c.values)]
}

// deal shuffles the types and cuts them into tables.
func deal(rnd *rand.Rand, types []columnType, size int) (tables [][]columnType) {
	rnd.Shuffle(len(types), func(i, j int) { types[i], types[j] = types[j], types[i] })
	for len(types) > size {
		tables = append(tables, types[:size])
		types = types[size:]
	}
	return append(tables, types)
}

// catalog lists every type that a table can have, those with parameters with random ones.
func catalog(flavor string, rnd *rand.Rand) (types []columnType) {
	types = append(types, numbers(rnd)...)
	types = append(types, times()...)
	types = append(types, texts(flavor, rnd)...)
	types = append(types,
		columnType{ddl: "FLOAT", values: []string{"0", "-1.5", "3.4e38"}, refused: true},
		columnType{ddl: "DOUBLE", values: []string{"0", "-1.5", "1e308"}, refused: true},
		columnType{ddl: "ENUM('a', 'b', 'ü')", values: []string{"'a'", "3"}, refused: true},
		columnType{ddl: "ENUM(" + quotedNumbers(300) + ")", values: []string{"1", "299", "300"}, refused: true},
		columnType{ddl: "GEOMETRY", values: []string{"POINT(1, 2)", "ST_GeomFromText('LINESTRING(0 0, 1 1, 2 2)')"}, refused: true},
		columnType{ddl: "POINT", values: []string{"POINT(1, 2)"}, refused: true},
		columnType{ddl: "JSON", values: []string{`'{"b": [1, 2.5, null, true, "ü\\n"], "a": {}}'`, `'[]'`, `'"x"'`, `'1e100'`}},
		columnType{ddl: "INT GENERATED ALWAYS AS (1 + 1) VIRTUAL", values: []string{"DEFAULT"}},
		columnType{ddl: "VARCHAR(9) CHARACTER SET utf8mb4 GENERATED ALWAYS AS ('ab') STORED", values: []string{"DEFAULT"}},
	)
	for _, n := range []int{1, 1 + rnd.IntN(64), 8, 9, 64} {
		types = append(types, columnType{ddl: fmt.Sprintf("BIT(%d)", n), values: []string{"0", "1", "b'1'"}, refused: true})
	}
	for _, n := range []int{1, 8, 9, 17, 25, 33, 64} {
		types = append(types, columnType{ddl: "SET(" + quotedNumbers(n) + ")", values: []string{"''", "1", "'1'", fmt.Sprint(uint64(1)<<(n-1) | 1)}, refused: true})
	}
	if flavor == rig.FlavorMySQL {
		return append(types, columnType{ddl: "VECTOR(3)", values: []string{"TO_VECTOR('[1,2,3]')", "TO_VECTOR('[4]')"}, refused: true})
	}
	return append(types,
		columnType{ddl: "UUID", values: []string{"UUID()"}, refused: true},
		columnType{ddl: "INET6", values: []string{"'::1'", "'::'"}, refused: true},
		columnType{ddl: "INET4", values: []string{"'127.0.0.1'"}, refused: true})
}

func numbers(rnd *rand.Rand) (types []columnType) {
	for bytes, name := range []string{"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"} {
		bits := (bytes + 1) * 8
		if name == "BIGINT" {
			bits = 64
		}
		low, high, top := -1<<(bits-1), uint64(1)<<(bits-1)-1, uint64(1)<<(bits-1)*2-1
		types = append(types,
			columnType{ddl: name, values: []string{fmt.Sprint(low), fmt.Sprint(high), "0", "-1", "1"}},
			columnType{ddl: name + " UNSIGNED", values: []string{fmt.Sprint(top), fmt.Sprint(high), fmt.Sprint(high + 1), "0"}})
	}
	for _, size := range [][2]int{{1, 0}, {1, 1}, {65, 30}, {38, 0}, {9, 9}, {10, 2}, {18, 9}, {1 + rnd.IntN(30), 0}, {30 + rnd.IntN(30), rnd.IntN(30)}} {
		p, s := size[0], size[1]
		types = append(types, columnType{
			ddl: fmt.Sprintf("DECIMAL(%d,%d)", p, s), values: []string{"0", "-1", strings.Repeat("9", p), "-" + strings.Repeat("9", p), "0.000000001", "-0.5"},
			make: func(rnd *rand.Rand) string {
				digits := func(n int) (d string) {
					for range n {
						d += fmt.Sprint(rnd.IntN(10) * rnd.IntN(2))
					}
					return d
				}
				return []string{"", "-"}[rnd.IntN(2)] + "0" + digits(rnd.IntN(p-s+1)) + "." + digits(s) + "0"
			},
		})
	}
	return append(types, columnType{ddl: "YEAR", values: []string{"0", "1901", "2155", "2024"}})
}

func times() (types []columnType) {
	types = append(types, columnType{ddl: "DATE", values: []string{"'0000-00-00'", "'9999-12-31'", "'2024-02-29'", "'2024-00-00'", "'2024-05-00'", "'0001-01-01'"}})
	for digits := range 7 {
		f := fmt.Sprintf("(%d)", digits)
		fraction := func(rnd *rand.Rand) string { return fmt.Sprintf(".%06d", rnd.IntN(1e6)) }
		types = append(types,
			columnType{
				ddl: "TIME" + f, values: []string{"'00:00:00'", "'838:59:59'", "'-838:59:59'", "'-00:00:00.1'", "'-00:00:01'", "'-00:00:00.000001'", "'-12:34:56.999999'"},
				make: func(rnd *rand.Rand) string {
					return fmt.Sprintf("'%s%d:%02d:%02d%s'", []string{"", "-"}[rnd.IntN(2)], rnd.IntN(800), rnd.IntN(60), rnd.IntN(60), fraction(rnd))
				},
			},
			columnType{
				ddl:    "DATETIME" + f,
				values: []string{"'0000-00-00'", "'9999-12-31 23:59:59'", "'1000-01-01 00:00:00.000001'", "'2024-00-00 01:02:03.5'", "'2024-05-00'", "'0000-01-01 00:00:00.9'"},
				make: func(rnd *rand.Rand) string {
					return fmt.Sprintf("'%d-%d-%d %d:%d:%d%s'", rnd.IntN(9999), rnd.IntN(13), rnd.IntN(29), rnd.IntN(24), rnd.IntN(60), rnd.IntN(60), fraction(rnd))
				},
			},
			columnType{
				ddl:    "TIMESTAMP" + f + " NULL",
				values: []string{"0", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2024-02-29 12:00:00.123456'", "'2001-09-09 01:46:40.9'"},
				make: func(rnd *rand.Rand) string {
					return fmt.Sprintf("'%d-%d-%d %d:%d:%d%s'", 1971+rnd.IntN(66), 1+rnd.IntN(12), 1+rnd.IntN(28), rnd.IntN(24), rnd.IntN(60), rnd.IntN(60), fraction(rnd))
				},
			})
	}
	return types
}

func texts(flavor string, rnd *rand.Rand) (types []columnType) {
	words := []string{"''", "'a'", "' a  '", "'{\"k\": \"v\"}'", "'über'", "'naïve €'", "'Жя'", "'日本語'", "'漢字한글'", "'a😀b'", "'\\\\\\'\\n\\0'"}
	random := func(most int) func(rnd *rand.Rand) string {
		return func(rnd *rand.Rand) string {
			pool := []rune("abc {}\":,é€ßЖβא日語漢한ก😀ﾊ")
			text := make([]rune, rnd.IntN(most+1))
			for i := range text {
				text[i] = pool[rnd.IntN(len(pool))]
			}
			return "'" + string(text) + "'"
		}
	}
	charsets := []string{"utf8mb4", "utf8mb3", "ascii", "latin1", "latin2", "latin7", "gbk", "big5", "sjis", "cp932", "euckr", "ujis", "eucjpms", "gb2312", "ucs2", "utf16", "utf16le", "utf32", "cp1251", "koi8r", "greek", "hebrew", "tis620", "swe7"}
	if flavor == rig.FlavorMySQL {
		charsets = append(charsets, "gb18030")
	}
	for _, charset := range charsets {
		n := []int{1, 10, 63, 64, 255}[rnd.IntN(5)]
		types = append(types,
			columnType{ddl: fmt.Sprintf("CHAR(%d) CHARACTER SET %s", n, charset), values: words, make: random(n)},
			columnType{ddl: fmt.Sprintf("VARCHAR(%d) CHARACTER SET %s", n+rnd.IntN(200), charset), values: words, make: random(n)},
			columnType{ddl: []string{"TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"}[rnd.IntN(4)] + " CHARACTER SET " + charset, values: words, make: random(50)})
	}
	bytes := []string{"''", "x'00'", "x'ff00fe'", "'abc '", "x'0000'", "REPEAT('x', 300)"}
	for _, tp := range []string{"BINARY(1)", "BINARY(16)", "BINARY(255)", "VARBINARY(3)", "VARBINARY(300)", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"} {
		types = append(types, columnType{ddl: tp, values: bytes})
	}
	types = append(types,
		columnType{ddl: "TINYTEXT CHARACTER SET utf8mb4", values: words, make: random(60)},
		columnType{ddl: "TEXT CHARACTER SET utf8mb4", values: words, make: random(2000)},
		columnType{ddl: "MEDIUMTEXT CHARACTER SET utf8mb4", values: append(words[:3:3], "REPEAT('é', 70000)")},
		columnType{ddl: "LONGTEXT CHARACTER SET utf8mb4", values: words, make: random(2000)})
	return types
}

// quotedNumbers lists '1', '2', ... for ENUM and SET.
func quotedNumbers(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("'%d'", i+1)
	}
	return strings.Join(names, ", ")
}
