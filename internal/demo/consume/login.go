package consume

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Login is how the consumer proves who it is, in the words of the relay's configuration. The zero value is no
// authentication.
type Login struct {
	Mechanism      string // plain, scram-sha-256, scram-sha-512 or oauthbearer
	User, Password string // for oauthbearer the password is the token
	TokenFile      string
}

// mechanism returns nil for none.
func (l Login) mechanism() (sasl.Mechanism, error) {
	switch l.Mechanism {
	case "":
		return nil, nil
	case "plain":
		return plain.Auth{User: l.User, Pass: l.Password}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: l.User, Pass: l.Password}.AsSha256Mechanism(), nil
	case "scram-sha-512":
		return scram.Auth{User: l.User, Pass: l.Password}.AsSha512Mechanism(), nil
	case "oauthbearer":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) { return l.token() }), nil
	}
	return nil, fmt.Errorf("unknown sasl mechanism %q", l.Mechanism)
}

func (l Login) token() (oauth.Auth, error) {
	if l.TokenFile == "" {
		return oauth.Auth{Token: l.Password}, nil
	}
	text, err := os.ReadFile(l.TokenFile)
	if err != nil {
		return oauth.Auth{}, fmt.Errorf("token: %w", err)
	}
	return oauth.Auth{Token: strings.TrimSpace(string(text))}, nil
}
