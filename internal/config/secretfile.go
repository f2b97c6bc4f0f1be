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
		t := elementType(f.typ)
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
			name := into.FieldByIndex(fileField.index).String()
			if name == "" {
				continue // its reference was not resolved, which is a problem already
			}
			secret, err := readSecret(name)
			if err == nil {
				err = setSecret(into.FieldByIndex(f.index), f, secret)
			}
			if err != nil {
				d.problems.add(prefix+fileField.name, file.at, "%s", err)
			}
		}
	}
}

// setSecret takes a file's content as a secret or, for a list of urls, each line as one.
func setSecret(into reflect.Value, f field, content string) error {
	if f.typ == secretType {
		into.Set(reflect.ValueOf(newSecret(content)))
		return nil
	}
	var urls []SecretURL
	for line := range strings.Lines(content) {
		url := newSecretURL(strings.TrimSpace(line))
		if url.IsZero() {
			continue
		}
		if err := f.check(url.Reveal(), reflect.ValueOf(url)); err != nil {
			return err
		}
		urls = append(urls, url)
	}
	into.Set(reflect.ValueOf(urls))
	return nil
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
