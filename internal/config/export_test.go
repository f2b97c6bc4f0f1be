package config

// What only the tests of this package need from outside.
const (
	KiB = kib
	MiB = mib
	GiB = gib
)

var (
	ParseSize    = parseSize
	NewSecret    = newSecret
	NewSecretURL = newSecretURL
)

// HasSecret reports whether something in the URL has to be hidden.
func HasSecret(u SecretURL) bool { return u.hasSecret() }
