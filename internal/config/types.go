package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

var (
	durationType  = reflect.TypeFor[time.Duration]()
	sizeType      = reflect.TypeFor[Size]()
	secretType    = reflect.TypeFor[Secret]()
	secretURLType = reflect.TypeFor[SecretURL]()
	groupsType    = reflect.TypeFor[Groups]()
)

// scalarType is how the values of one type are written.
type scalarType struct {
	text  string                    // what a message asks for
	parse func(string) (any, error) // of text that is not empty
}

// scalarTypes are the types of all settings that are no sections, lists or groups.
var scalarTypes = map[reflect.Type]scalarType{
	reflect.TypeFor[string]():  {"text", func(text string) (any, error) { return text, nil }},
	secretType:                 {"text", func(text string) (any, error) { return newSecret(text), nil }},
	secretURLType:              {"a url or a list of them", func(text string) (any, error) { return newSecretURL(text), nil }},
	reflect.TypeFor[bool]():    {"true or false", parseBool},
	reflect.TypeFor[float64](): {"a number", parseNumber},
	reflect.TypeFor[int]():     {"a whole number", parseInt},
	reflect.TypeFor[uint32]():  {"a whole number", parseUint},
	durationType:               {"a duration such as 5s", parseDuration},
	sizeType:                   {"a size such as 64MiB", func(text string) (any, error) { return parseSize(text) }},
}

// parseScalar reads a value of type t; empty text is zero whatever the type.
func parseScalar(text string, t reflect.Type) (reflect.Value, error) {
	if text == "" {
		return reflect.Zero(t), nil
	}
	value, err := scalarTypes[t].parse(text)
	return reflect.ValueOf(value), err
}

func parseBool(text string) (any, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

func parseNumber(text string) (any, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, errors.New("must be a number")
	}
	return n, nil
}

func parseInt(text string) (any, error) {
	n, err := strconv.Atoi(strings.ReplaceAll(text, "_", ""))
	if err != nil {
		return 0, errors.New("must be a whole number")
	}
	return n, nil
}

func parseUint(text string) (any, error) {
	n, err := strconv.ParseUint(strings.ReplaceAll(text, "_", ""), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("must be a whole number from 0 to %d", uint32(math.MaxUint32))
	}
	return uint32(n), nil
}

func parseDuration(text string) (any, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if _, number := strconv.ParseFloat(text, 64); number == nil {
		return 0, fmt.Errorf("needs a unit, such as %ss or %sms", text, text)
	}
	return 0, errors.New("must be a duration such as 500ms, 5s, 10m or 168h")
}

// number makes values with bounds comparable.
func number(v reflect.Value) float64 { return v.Convert(reflect.TypeFor[float64]()).Float() }

// valueText is the text that would be written for a value.
func valueText(v reflect.Value) string {
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		return durationText(d)
	}
	return fmt.Sprint(v.Interface())
}

// durationText is time.Duration.String without the zero parts: 10m and not 10m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Size is a number of bytes, written as 64MiB.
type Size int64

// Units of Size.
const (
	kib Size = 1 << 10
	mib Size = 1 << 20
	gib Size = 1 << 30
)

// parseSize reads 64MiB, 64MB (a million bytes each) or a plain number of bytes.
func parseSize(text string) (Size, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 || strings.HasPrefix(text, "-") {
		return 0, errors.New("must be a size such as 64MiB")
	}
	return Size(n), nil
}

// String returns the size exactly, in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range []struct {
		size Size
		name string
	}{{gib, "GiB"}, {mib, "MiB"}, {kib, "KiB"}} {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText writes what parseSize reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
