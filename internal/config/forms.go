package config

import (
	"errors"
	"fmt"
	"net"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/outbox-relay/mysql"
)

// forms check the text of one setting by the name in its form tag. An error follows the value that is wrong.
var forms = map[string]func(text string) error{
	"source":         matching(`^[A-Za-z0-9._-]{1,48}$`, "must be 1 to 48 letters, digits, dots, dashes or underscores"),
	"address":        address,
	"server":         server,
	"table":          table,
	"glob":           glob,
	"key":            matching(`^([^/]|/([^~]|~[01])*$)`, "is no JSON pointer; write ~0 for ~ and ~1 for /"),
	"topic":          topic,
	"topic template": func(text string) error { return template(text, "topic") },
	"group":          group,
	"group template": func(text string) error { return template(text, "source") },
	"history":        history,
	"acks":           acksTable,
	"version":        matching(`^\d+\.\d+(\.\d+){0,2}$`, "must be a version such as 3.6.0, or empty"),
	"redis":          redis,
	"listen":         listen,
	"path":           matching(`^/([^{}?# ]*[^{}?# /])$`, "must begin with a slash and not end with one, as /relay"),
}

var (
	topicText   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)
	placeholder = regexp.MustCompile(`\{[^}]*\}?`)
)

// matching is the form of text that matches a pattern.
func matching(pattern, message string) func(string) error {
	expression := regexp.MustCompile("(?s)" + pattern)
	return func(text string) error {
		if !expression.MatchString(text) {
			return errors.New(message)
		}
		return nil
	}
}

func address(text string) error {
	host, port, err := net.SplitHostPort(text)
	n, portErr := strconv.Atoi(port)
	if err != nil || host == "" || portErr != nil || n < 1 || n > 65535 {
		return errors.New("must be host:port")
	}
	return nil
}

// server is an address, or the path of a socket.
func server(text string) error {
	if strings.HasPrefix(text, "/") {
		return nil
	}
	return address(text)
}

func table(text string) error {
	_, err := mysql.ParsePattern(text)
	if wrong, ok := errors.AsType[*mysql.PatternError](err); ok {
		return errors.New(wrong.Problem)
	}
	return err
}

func glob(text string) error {
	if _, err := path.Match(text, ""); err != nil {
		return errors.New("is no glob; close its bracket, or put a backslash before it")
	}
	return nil
}

func topic(text string) error {
	if !topicText.MatchString(text) || text == "." || text == ".." {
		return errors.New("is no topic's name; use letters, digits, dots, dashes and underscores")
	}
	return nil
}

func group(text string) error {
	if len(text) > maxGroupName {
		return fmt.Errorf("is longer than %d bytes; shorten it", maxGroupName)
	}
	return nil
}

// template checks that a text holds no other placeholder than {name}.
func template(text, name string) error {
	for _, found := range placeholder.FindAllString(text, -1) {
		if found != "{"+name+"}" {
			return fmt.Errorf("holds a placeholder other than {%s}; correct it", name)
		}
	}
	return nil
}

func history(text string) error {
	err := template(text, "table")
	switch {
	case err != nil:
		return err
	case strings.Count(text, "{table}") != 1 || text == "{table}":
		return errors.New("must be another table than the one archived; write {table}_history")
	case strings.ContainsAny(text, "./`"):
		return errors.New("must be a table's name: the history is in the same database")
	}
	return nil
}

func acksTable(text string) error {
	err := template(text, "table")
	if err == nil && (text == "{table}" || !strings.Contains(text, "{table}")) {
		err = errors.New("must hold {table} and be another table than the messages'; write {table}_ack")
	}
	return err
}

// redis never repeats a url: what is wrong with it may be its password.
func redis(text string) error {
	schemes := []string{"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster", "unix"}
	scheme, rest, ok := strings.Cut(text, "://")
	_, _, err := net.SplitHostPort(text)
	switch {
	case !ok && err != nil:
		return errors.New("must be redis://host:port/0, rediss://, redis+sentinel:// or, in a list, host:port")
	case ok && !slices.Contains(schemes, scheme):
		return errors.New("begins with an unknown scheme; use redis://, rediss:// or redis+sentinel://")
	case ok && rest == "":
		return errors.New("names no server; write redis://host:port/0")
	}
	return nil
}

func listen(text string) error {
	if _, _, err := net.SplitHostPort(text); text != "" && err != nil {
		return errors.New("must be host:port, :port, or empty to switch the console off")
	}
	return nil
}
