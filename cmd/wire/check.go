package wire

import (
	"errors"
	"fmt"

	"example.com/outbox-relay/config"
	"example.com/outbox-relay/router"
)

// Check asks the packages that use the configuration whether they can: what only they know, and what can be known without
// a server.
func Check(c *config.Config) error {
	var errs []error
	for _, s := range c.Sources {
		for _, check := range []func() error{
			func() error { _, err := router.New(Router(c, s)); return err },
			func() error {
				cfg, err := Stream(c, s)
				return errors.Join(err, cfg.Validate())
			},
			func() error {
				cfg, err := Primary(c, s)
				return errors.Join(err, cfg.Validate())
			},
			func() error {
				cfg, err := Kafka(c, s.Name)
				return errors.Join(err, cfg.Validate())
			},
		} {
			if err := check(); err != nil {
				errs = append(errs, fmt.Errorf("source %s: %w", s.Name, err))
			}
		}
	}
	cfg, err := Redis(c)
	return errors.Join(append(errs, err, cfg.Validate())...)
}
