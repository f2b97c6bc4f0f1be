package kafka

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// SASL says how the relay proves who it is. The zero value is no authentication.
type SASL struct {
	// Mechanism is plain, scram-sha-256, scram-sha-512 or oauthbearer; "": none.
	Mechanism string
	User      string
	// Password is the user's, or the token for oauthbearer.
	Password string
	// TokenFile holds the token for oauthbearer. It is read anew for each connection, so that whatever rotates the
	// token needs only to write the file.
	TokenFile string
}

var mechanisms = map[string]sarama.SASLMechanism{
	"plain":         sarama.SASLTypePlaintext,
	"scram-sha-256": sarama.SASLTypeSCRAMSHA256,
	"scram-sha-512": sarama.SASLTypeSCRAMSHA512,
	"oauthbearer":   sarama.SASLTypeOAuth,
}

func (s SASL) validate() error {
	mechanism, ok := mechanisms[s.Mechanism]
	switch {
	case s.Mechanism == "":
		return nil
	case !ok:
		return fmt.Errorf("kafka.sasl.mechanism: %q is none of plain, scram-sha-256, scram-sha-512, oauthbearer", s.Mechanism)
	case mechanism == sarama.SASLTypeOAuth:
		if s.Password == "" && s.TokenFile == "" {
			return errors.New("kafka.sasl: oauthbearer needs a token: set password_file to the file that holds it, or password")
		}
		return nil
	}
	var errs []error
	if s.User == "" {
		errs = append(errs, fmt.Errorf("kafka.sasl.user: %s needs one", s.Mechanism))
	}
	if s.Password == "" {
		errs = append(errs, fmt.Errorf("kafka.sasl.password: %s needs one", s.Mechanism))
	}
	return errors.Join(errs...)
}

func (s SASL) apply(sc *sarama.Config) {
	if s.Mechanism == "" {
		return
	}
	sc.Net.SASL.Enable = true
	sc.Net.SASL.Mechanism = mechanisms[s.Mechanism]
	sc.Net.SASL.User = s.User
	sc.Net.SASL.Password = s.Password
	switch sc.Net.SASL.Mechanism {
	case sarama.SASLTypeSCRAMSHA256:
		sc.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA256} }
	case sarama.SASLTypeSCRAMSHA512:
		sc.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA512} }
	case sarama.SASLTypeOAuth:
		sc.Net.SASL.TokenProvider = tokenSource{token: s.Password, file: s.TokenFile}
	}
}

// scramClient is the conversation that sarama leaves to its user.
type scramClient struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

// Begin prepares the conversation.
func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return fmt.Errorf("prepare SCRAM for user %s: %w", user, err)
	}
	c.conversation = client.NewConversation()
	return nil
}

// Step answers the broker's challenge.
func (c *scramClient) Step(challenge string) (string, error) { return c.conversation.Step(challenge) }

// Done reports whether the conversation is over.
func (c *scramClient) Done() bool { return c.conversation.Done() }

// tokenSource hands the same token to each connection, or what stands in the file at that moment.
type tokenSource struct {
	token string
	file  string
}

// Token returns the token.
func (t tokenSource) Token() (*sarama.AccessToken, error) {
	if t.file == "" {
		return &sarama.AccessToken{Token: t.token}, nil
	}
	text, err := os.ReadFile(t.file)
	if err != nil {
		return nil, fmt.Errorf("read the token of kafka.sasl: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return nil, fmt.Errorf("read the token of kafka.sasl: %s is empty", t.file)
	}
	return &sarama.AccessToken{Token: token}, nil
}
