package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
)

// maxSecretFile is far above any password or token; it keeps a wrong path from filling the memory.
const maxSecretFile = 64 << 10

// secretFiles reads, for each secret x of a section, what x_file names.
func (d *decoder) secretFiles(n *node, into reflect.Value, fields []field, prefix string) {
	for _, f := range fields {
		t := scalarType(f.typ)
		if t != secretType && t != secretURLType {
			continue
		}
		fileField, ok := fieldNamed(fields, f.name+"_file")
		if !ok {
			continue
		}
		file := n.field(fileField.name)
		switch {
		case !file.given():
			// The secret itself overrules a file that came with what this section inherits.
			if n.field(f.name).given() {
				into.FieldByIndex(fileField.index).SetString("")
			}
		case n.field(f.name).given():
			d.problems.add(prefix+f.name, file.at, "%s and %s are both set; remove one", f.name, fileField.name)
		default:
			d.secretFile(into, f, into.FieldByIndex(fileField.index).String(), prefix+fileField.name)
		}
	}
}

func (d *decoder) secretFile(into reflect.Value, f field, file, path string) {
	if file == "" {
		return // its reference was not resolved, which is a problem already
	}
	content, err := readSecret(file)
	if err != nil {
		d.problems.add(path, d.where[path], "%s", err)
		return
	}
	if f.typ == secretType {
		into.FieldByIndex(f.index).Set(reflect.ValueOf(NewSecret(content)))
		return
	}
	var urls []SecretURL
	for _, u := range strings.FieldsFunc(content, func(r rune) bool { return r == '\n' || r == '\r' }) {
		urls = append(urls, NewSecretURL(strings.TrimSpace(u)))
	}
	into.FieldByIndex(f.index).Set(reflect.ValueOf(urls))
}

// readSecret returns a file's content without the newline that editors put at its end.
func readSecret(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("%w; create it or change the path", err)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	if len(content) > maxSecretFile {
		return "", fmt.Errorf("%s is larger than %d bytes and so no secret; change the path", file, maxSecretFile)
	}
	text := strings.TrimRight(string(content), "\r\n")
	if text == "" {
		return "", fmt.Errorf("%s is empty; write the secret into it", file)
	}
	return text, nil
}
