package config

import (
	"fmt"
	"strings"
)

// hidden stands for a secret wherever it would be printed.
const hidden = "***"

// concealed is a text with another that is shown in its place. The text is out of reach of fmt: a wrong verb for a
// pointer around it makes fmt print the fields below without asking their methods, and of a pointer it then prints the
// address only.
type concealed struct {
	text  *string
	shown string
}

func conceal(text, shown string) concealed {
	if text == "" {
		return concealed{}
	}
	return concealed{text: &text, shown: shown}
}

// Reveal returns the value, for the client library that needs it.
func (c concealed) Reveal() string {
	if c.text == nil {
		return ""
	}
	return *c.text
}

// IsZero reports whether there is no value.
func (c concealed) IsZero() bool { return c.text == nil }

// String returns what may be shown.
func (c concealed) String() string { return c.shown }

// GoString hides the value from %#v.
func (c concealed) GoString() string { return "config.Secret(" + c.shown + ")" }

// Format hides the value from every verb of fmt.
func (c concealed) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(c.shown)) }

// MarshalText hides the value from encoders such as JSON and YAML.
func (c concealed) MarshalText() ([]byte, error) { return []byte(c.shown), nil }

// Secret is a value that prints as ***, in every format and encoding, or as nothing when it is empty.
type Secret struct{ concealed }

// newSecret hides a value.
func newSecret(value string) Secret { return Secret{conceal(value, hidden)} }

// SecretURL is a URL that may hold a password; it prints with *** in the password's place.
type SecretURL struct{ concealed }

// newSecretURL hides the password in a URL.
func newSecretURL(value string) SecretURL { return SecretURL{conceal(value, redactURL(value))} }

// hasSecret reports whether something in the URL has to be hidden.
func (u SecretURL) hasSecret() bool { return u.String() != u.Reveal() }

// redactURL returns a URL without its secrets, or *** when it is not clear where they are. It is cut by hand, because
// url.Parse refuses the several hosts of redis+sentinel:// and a refused url would be no less secret.
func redactURL(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
	} else {
		scheme += "://"
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if strings.Contains(tail, "@") || !ok && strings.Contains(authority, "@") {
		return hidden // an unescaped character of the password has cut the url in a wrong place
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		// A lone name before the @ is, more often than not, meant as the password.
		user, _, hasPassword := strings.Cut(authority[:at], ":")
		if !hasPassword {
			user = hidden
		} else {
			user += ":" + hidden
		}
		authority = user + authority[at:]
	}
	return scheme + authority + redactQuery(tail)
}

// redactQuery hides the values of parameters that are called like a secret.
func redactQuery(tail string) string {
	path, query, ok := strings.Cut(tail, "?")
	if !ok {
		return tail
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		if key, value, _ := strings.Cut(p, "="); value != "" && looksSecret(key) {
			parameters[i] = key + "=" + hidden
		}
	}
	return path + "?" + strings.Join(parameters, "&")
}

func looksSecret(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"pass", "pwd", "secret", "token", "auth", "key"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// Reveal returns the urls with their passwords, for the client library that needs them.
func (r Redis) Reveal() []string {
	out := make([]string, len(r.URL))
	for i, u := range r.URL {
		out[i] = u.Reveal()
	}
	return out
}
